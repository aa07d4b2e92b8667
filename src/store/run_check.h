// Checks run folders without trusting any of their files.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "store/result.h"
#include "store/run_tree.h"

namespace sb {

constexpr size_t kMaxConfigFileBytes = size_t{4} << 20;  // bytes of config.toml, and of config.json
constexpr size_t kMaxMetricsBytes = size_t{1} << 31;
constexpr size_t kMaxWeightsBytes = size_t{1} << 34;
constexpr size_t kMaxAutomatonBytes = size_t{1} << 30;

// Content of config.json, after its seal and run id were checked.
struct StoredConfig {
  std::string run_id, toml, canonical, automaton_digest;  // the digest is empty if the grammar is generated
  int64_t updates = 0;
};
std::string stored_config_text(const StoredConfig& config);  // sealed
// Throws bad_input that names the file; OtherSchema for an old file without the whole config.
StoredConfig read_stored_config(const std::string& folder, const RunTree& tree = RunTree::disk());
StoredConfig parse_stored_config(const std::string& text, const std::string& path);

// The result of a finished run: sealed and validated. Throws bad_input that names the file if it is absent, truncated
// or changed, OtherSchema for other versions.
Result load_result(const std::string& folder, const RunTree& tree = RunTree::disk());
// The text of the result: bounded and with a valid seal, but not parsed.
std::string load_result_text(const std::string& folder, const RunTree& tree = RunTree::disk());

enum class RunState {
  whole,            // every file matches its digest
  without_weights,  // intact, but without final.safetensors
  packed,           // intact, with thinned metrics (metrics.thinned.json)
  unfinished,       // no result yet, and no problem
  damaged,
  older,  // schema of an older version, which this program does not read
  newer,
};
const char* to_string(RunState state);

struct RunReport {
  std::string folder, run_id;  // the id is empty if it cannot be read
  RunState state = RunState::damaged;
  std::vector<std::string> problems;     // one line each, with the file's name
  std::vector<std::string> not_needed;   // the same, for damaged checkpoints of a run with a valid result
  bool result_stands = false;            // the result is valid, and its files are intact (weights may be missing)
  std::string status;                    // status of the result: done or diverged
  int64_t update = 0, updates = 0;       // done, by the result or else the newest intact checkpoint; total
  std::shared_ptr<const Result> result;  // if result_stands
  std::optional<int64_t> checkpoint;     // update of the newest intact checkpoint; only with CheckScope::all
};
// What to check: only the files that the result depends on, or also checkpoints and saved evaluations.
enum class CheckScope { result, all };
RunReport inspect_run(const std::string& folder, CheckScope look = CheckScope::all,
                      const RunTree& tree = RunTree::disk());
// One line for each file of the run that is missing or does not match its digest; empty: all files are intact.
std::vector<std::string> verify_run(const std::string& folder);

// True if the folder is named after its run, its config is unchanged and its result is valid: nothing is left to do.
bool has_result(const std::string& folder);
// The content of `root`, each list sorted by path. Run folders are not entered, except the root. Links to folders are
// followed only if they lead to a run.
struct DamagedArchive {
  std::string path, problem;  // problem: one line, with the file's name
};
struct FoundFolders {
  std::vector<std::string> runs;     // folders with a config.json or result.json, possibly `root` itself
  std::vector<std::string> folders;  // folders that were searched, `root` first
  std::vector<std::string> notes;    // what was not searched, one line each
  std::vector<DamagedArchive> damaged;
};
FoundFolders find_runs(const std::string& root);
// Throws bad_input "[where] expected a folder of runs or an archive, …" if `root` is neither a folder nor an archive by
// its name or first bytes.
void expect_folder_or_archive(const std::string& root, const std::string& where);
// Like above with archives: `root` may be an archive, and archives in folders are searched. Throws bad_input if `root`
// is an archive that cannot be read.
FoundFolders find_runs(const std::string& root, RunTree& tree);
// If `path` is the changed config.toml of a run folder, restores it from config.json and returns true. Throws bad_input
// if automaton.json of the folder does not match config.json: it would be another run.
bool restore_config(const std::string& path, FileSystem& files = real_file_system());

}  // namespace sb
