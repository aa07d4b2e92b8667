// Reads the runs of folders for tables. An unusable run is named in the notes and does not affect the others.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "report/rows.h"
#include "report/table_choice.h"
#include "store/run_check.h"

namespace sb {

// One run folder: its check and, if usable, its content.
struct ReadRun {
  RunReport report;
  bool begun = true;                    // the folder has a config or a result
  std::optional<TableRun> run;          // including its samples
  ConfigMap config;                     // of an unusable run, if known
  std::optional<int64_t> other_schema;  // of such a result
  std::vector<Note> notes;
  size_t other_weights = 0;  // saved evaluations of other weights than the run's
};
std::string folder_name(const std::string& folder);  // last part of a path, safe to print
ReadRun read_run(const std::string& folder, const RunTree& tree = RunTree::disk());
// Function that reads a folder, called from several threads. A caching reader makes reading the same folders again
// cheap.
using RunReader = std::function<std::shared_ptr<const ReadRun>(const std::string& folder, const RunTree& tree)>;

// All runs in and below folders and archives, sorted by path, with the axes recorded there.
struct GatheredRuns {
  Axes axes;
  std::vector<std::shared_ptr<const ReadRun>> runs;
  std::vector<DamagedArchive> archives;
  std::vector<Note> notes;  // of folders and archives
};
// What to do if a root is an archive that cannot be read: throw bad_input, or list it with the damaged archives.
enum class DamagedRoot { refused, listed };
GatheredRuns gather_runs(const std::vector<std::string>& roots, const RunReader& reader = {},
                         DamagedRoot root = DamagedRoot::refused);
// Rows of all these runs, without samples.
Rows rows_of(const GatheredRuns& gathered, SwitchDefaults defaults = {});

struct FoundRuns {
  std::vector<TableRun> runs;
  std::vector<MissingRun> missing;  // not finished, damaged, of another schema
  std::vector<Note> notes;          // the same
};

// A folder that is named twice, even with different spellings, is read once.
FoundRuns read_runs(const std::vector<std::string>& folders, const RunTree& tree = RunTree::disk());
// Rows of every finished run in `roots`, folders or archives, and in the folders and archives below them, with the axes
// recorded there and those given. Throws bad_input if there is no finished run of the choice, or if a given axis is no
// key of a run.
Rows read_rows(const std::vector<std::string>& roots, const TableChoice& choice = {}, SwitchDefaults defaults = {});
Rows read_rows(const std::string& root, const TableChoice& choice = {}, SwitchDefaults defaults = {});
// Rows of all these folders and archives together, with the default axes and those recorded there. Labels are ignored,
// so runs of one network with different labels form one group. It is no error if there are no finished runs. Throws
// bad_input for a root that is neither a folder nor an archive.
Rows read_all_rows(const std::vector<std::string>& roots, SwitchDefaults defaults = {});
// Throws bad_input "[where] …" for the first root that is neither a readable folder nor a file.
void check_roots(const std::vector<std::string>& roots, const std::string& where);

}  // namespace sb
