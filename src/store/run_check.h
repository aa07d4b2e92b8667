// Checks run folders without trusting any of their files.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/find_runs.h"
#include "store/result.h"
#include "store/run_files.h"
#include "store/run_tree.h"

namespace sb {

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

}  // namespace sb
