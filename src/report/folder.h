// Runs of a folder, read for tables. A run that cannot be used is named in the notes and spoils nothing.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "report/rows.h"
#include "runs/run_check.h"

namespace sb {

// One folder, looked at and, where the run can be used, read.
struct ReadRun {
  RunReport report;
  bool begun = true;                    // it has a config or a result
  std::optional<TableRun> run;          // with its samples
  ConfigMap config;                     // of one that cannot be used, where it is known
  std::optional<int64_t> other_schema;  // of such a result
  std::vector<std::string> notes;       // safe to print
  size_t other_weights = 0;             // saved evaluations of other weights than the run's
};
ReadRun read_run(const std::string& folder, const RunTree& tree = RunTree::disk());
// How a folder is read, from several threads; one that keeps what it has read makes reading the same folders again
// cheap.
using RunReader = std::function<std::shared_ptr<const ReadRun>(const std::string& folder, const RunTree& tree)>;

// Everything in folders and archives and below them, in order of path, with the axes recorded there.
struct GatheredRuns {
  Axes axes;
  std::vector<std::shared_ptr<const ReadRun>> runs;
  std::vector<DamagedArchive> archives;
  std::vector<std::string> notes;  // of folders and archives
};
// A root that is an archive and cannot be read: bad_input, or one more of the damaged archives.
enum class DamagedRoot { refused, listed };
GatheredRuns gather_runs(const std::vector<std::string>& roots, const RunReader& reader = {},
                         DamagedRoot root = DamagedRoot::refused);
// Rows of them all; samples are left behind.
Rows rows_of(const GatheredRuns& gathered, SwitchDefaults defaults = {});

struct FoundRuns {
  std::vector<TableRun> runs;
  std::vector<MissingRun> missing;  // not finished, damaged, of another schema
  std::vector<std::string> notes;   // the same
};

// A folder that is named twice, in whatever spelling, is read once.
FoundRuns read_runs(const std::vector<std::string>& folders, const RunTree& tree = RunTree::disk());
// Rows of every finished run in `roots`, folders or archives, and in the folders and archives below them, with the axes
// recorded there and those given. Throws bad_input if there is no finished run, or if a given axis is no key of a run.
Rows read_rows(const std::vector<std::string>& roots, const std::vector<std::string>& select = {},
               const std::vector<std::string>& average = {}, SwitchDefaults defaults = {});
Rows read_rows(const std::string& root, const std::vector<std::string>& select = {},
               const std::vector<std::string>& average = {}, SwitchDefaults defaults = {});
// Rows of all these folders and archives together, with the usual axes and those recorded there, and without labels:
// runs of one network that two suites call by different words are one group. No finished run is no fault here, neither
// folder nor archive is bad_input.
Rows read_all_rows(const std::vector<std::string>& roots, SwitchDefaults defaults = {});
// Throws bad_input "[where] …" for the first of these that is neither a folder that can be read nor a file.
void check_roots(const std::vector<std::string>& roots, const std::string& where);

}  // namespace sb
