// Measurements that `eval --save` adds to a run folder, one sealed file eval-<digest of the request>.json per request.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "store/result.h"
#include "store/run_tree.h"

namespace sb {

constexpr int evaluation_schema = 1;

struct GatePoint {
  std::optional<int> at;  // value of the test axis; absent: the task's own distribution
  GateFigures figures;
  std::vector<DecaySpectrum> decays;
};

struct SavedEvaluation {
  std::string run_id, model;
  int task = 0;
  std::string objective;
  // The request; its digest names the file.
  std::string split;               // as requested
  std::optional<int64_t> samples;  // absent: as in the config
  std::vector<int> at;             // values of the test axis; empty: the task's own distribution
  bool with_gates = false;
  std::string weights;                           // "final", "checkpoint" or "file" (trained elsewhere)
  std::string weights_sha256;                    // of the file
  std::optional<int64_t> update;                 // number of updates, for a checkpoint
  std::optional<std::string> device, precision;  // as computed; absent: as in the run; both or none
  // The measurements.
  std::vector<Measurement> points;  // one per value of `at`, or one
  std::vector<GatePoint> gates;
  std::optional<Provenance> made;
};

std::string evaluation_text(const SavedEvaluation& evaluation);  // JSON
SavedEvaluation parse_evaluation(std::string_view text, const std::string& file);

std::string evaluation_name(const SavedEvaluation& evaluation);  // eval-0123456789abcdef.json
// Checks the file of this request. Returns one line with its name and problem; empty if it is intact or does not exist.
// Throws bad_input if save_evaluation would not write: if the path is not a regular file, or has another schema.
std::string evaluation_fault(const std::string& folder, const SavedEvaluation& request);
// Writes the evaluation and returns its path. Keeps an existing file with the same numbers and replaces a damaged one.
// Throws check_failed if an intact file has other numbers.
std::string save_evaluation(const std::string& folder, const SavedEvaluation& evaluation,
                            FileSystem& files = real_file_system());
// The run that an evaluation must name.
struct EvaluatedRun {
  std::string run_id, model;
  int task = 0;
};
EvaluatedRun evaluated_run(const std::string& run_id, const std::map<std::string, std::string>& config);
// All saved evaluations of a run folder, by name. A file that is damaged, invalid, of another run, or without the
// measurements of its request is skipped and adds a line to `problems`; without `problems` it throws.
std::vector<SavedEvaluation> load_evaluations(const std::string& folder, const EvaluatedRun& run,
                                              std::vector<std::string>* problems = nullptr,
                                              const RunTree& tree = RunTree::disk());
// Like above, with the run of the folder's config.json.
std::vector<SavedEvaluation> load_evaluations(const std::string& folder, std::vector<std::string>* problems = nullptr);

}  // namespace sb
