// Runs of a folder, read for tables. A run that cannot be used is named in the notes and spoils nothing.
#pragma once
#include <string>
#include <vector>

#include "report/rows.h"

namespace sb {

struct FoundRuns {
  std::vector<TableRun> runs;
  std::vector<MissingRun> missing;  // not finished, damaged, of another schema
  std::vector<std::string> notes;   // the same
};

// A folder that is named twice, in whatever spelling, is read once.
FoundRuns read_runs(const std::vector<std::string>& folders, const RunTree& tree = RunTree::disk());
// Rows of every finished run in `root`, a folder or an archive, and in the folders and archives below it, with the axes
// recorded there and those given. Throws bad_input where there is no finished run, or where a given axis is no key of a
// run.
Rows read_rows(const std::string& root, const std::vector<std::string>& select = {},
               const std::vector<std::string>& average = {}, SwitchDefaults defaults = {});
// Rows of all these folders and archives together, with the usual axes and those recorded there, and without labels:
// runs of one network that two suites call by different words are one group. No finished run is no fault here, neither
// folder nor archive is bad_input.
Rows read_all_rows(const std::vector<std::string>& roots, SwitchDefaults defaults = {});

}  // namespace sb
