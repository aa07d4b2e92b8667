// What can be said of a run folder without trusting anything in it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "runs/result.h"
#include "runs/run_tree.h"

namespace sb {

constexpr size_t largest_config_file = size_t{4} << 20;  // bytes of config.toml, and of config.json
constexpr size_t largest_metrics = size_t{1} << 31;
constexpr size_t largest_weights = size_t{1} << 34;
constexpr size_t largest_automaton = size_t{1} << 30;

// config.json, its seal and run id checked.
struct StoredConfig {
  std::string run_id, toml, canonical, automaton_digest;  // the digest is empty where the automaton is built
  int64_t updates = 0;
};
std::string stored_config_text(const StoredConfig& config);  // sealed
// Throws bad_input that names the file; OtherSchema for one written before it held the whole config.
StoredConfig read_stored_config(const std::string& folder, const RunTree& tree = RunTree::disk());
StoredConfig parse_stored_config(const std::string& text, const std::string& path);

// The result of a finished run: sealed, typed. Throws bad_input that names the file if it is absent, torn or changed,
// OtherSchema for other versions.
Result load_result(const std::string& folder, const RunTree& tree = RunTree::disk());
// Its text: bounded and sealed, not yet read.
std::string load_result_text(const std::string& folder, const RunTree& tree = RunTree::disk());

enum class RunState {
  whole,            // every file fits its digest
  without_weights,  // the same, and final.safetensors is not there
  packed,           // the same, and of the metrics only a part (metrics.thinned.json)
  unfinished,       // no result yet, and nothing is wrong
  damaged,
  older,  // written by a version that this program does not read
  newer,
};
const char* to_string(RunState state);

struct RunReport {
  std::string folder, run_id;  // the id is empty where it cannot be read
  RunState state = RunState::damaged;
  std::vector<std::string> problems;     // one line each, with the file's name
  std::vector<std::string> not_needed;   // the same, of damaged checkpoints of a run whose result stands
  bool result_stands = false;            // complete, and the files it names are as they were or are the missing weights
  std::string status;                    // of the result: done or diverged
  int64_t update = 0, updates = 0;       // made: those of the result or else of the newest whole checkpoint; of all
  std::shared_ptr<const Result> result;  // where it stands
  std::optional<int64_t> checkpoint;     // updates of the newest whole one; looked for with Look::all
};
// How much is looked at: what the result rests on alone, or checkpoints and saved evaluations too.
enum class Look { result, all };
RunReport inspect_run(const std::string& folder, Look look = Look::all, const RunTree& tree = RunTree::disk());
// One line for each file of the run that is missing or does not fit its digest; empty: all is well.
std::vector<std::string> verify_run(const std::string& folder);

// The folder is named after its run, its config is as it was and its result stands: nothing is left to do.
bool has_result(const std::string& folder);
// What lies under `root`, each list sorted by path. Folders of runs are not entered but for the root; links to folders
// are not followed, unless to a run.
struct DamagedArchive {
  std::string path, problem;  // one line, with the file's name
};
struct FoundFolders {
  std::vector<std::string> runs;     // with a config.json or result.json, `root` itself too
  std::vector<std::string> folders;  // in which runs were looked for, `root` first
  std::vector<std::string> notes;    // what was not looked into, one line each
  std::vector<DamagedArchive> damaged;
};
FoundFolders find_runs(const std::string& root);
// Throws bad_input "[where] expected a folder of runs or an archive, …" if `root` is neither a folder nor an archive by
// its name or first bytes.
void expect_folder_or_archive(const std::string& root, const std::string& where);
// The same with archives: `root` may be one, and those in folders are looked into. Throws bad_input where `root` is an
// archive that cannot be read.
FoundFolders find_runs(const std::string& root, RunTree& tree);
// If `path` is the config.toml of a run folder and was changed, writes it anew from config.json; true if so. Throws
// bad_input where the folder's automaton.json is not the one of config.json: it would be another run.
bool restore_config(const std::string& path, FileSystem& files = real_file_system());

}  // namespace sb
