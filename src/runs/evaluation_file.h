// Measurements that `eval` adds to a run folder: one sealed file eval-<digest of the request>.json each.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "runs/result.h"
#include "runs/run_tree.h"

namespace sb {

constexpr int evaluation_schema = 1;

struct GatePoint {
  std::optional<int> gap;  // absent: the task's own law
  GateFigures figures;
  std::vector<DecaySpectrum> decays;
};

struct SavedEvaluation {
  std::string run_id, model;
  int task = 0;
  std::string objective;
  // The request; its digest names the file.
  std::string split;               // as asked for
  std::optional<int64_t> samples;  // absent: as the config says
  std::vector<int> gaps;           // empty: the task's own law
  bool with_gates = false;
  std::string weights;                           // final, checkpoint, or file: trained elsewhere
  std::string weights_sha256;                    // of the file
  std::optional<int64_t> update;                 // checkpoint: after how many updates
  std::optional<std::string> device, precision;  // as computed, both or none; absent: as the run itself
  // What was found.
  std::vector<Measurement> points;  // one a gap, or one
  std::vector<GatePoint> gates;
  std::optional<Provenance> made;
};

std::string evaluation_text(const SavedEvaluation& evaluation);  // JSON
SavedEvaluation parse_evaluation(std::string_view text, const std::string& file);

std::string evaluation_name(const SavedEvaluation& evaluation);  // eval-0123456789abcdef.json
// What is wrong with the file of this request, one line with its name; empty: it is whole or there is none. Throws
// bad_input where save_evaluation would not write: for what is no file, and for a file of another schema.
std::string evaluation_fault(const std::string& folder, const SavedEvaluation& request);
// Its path. A file with the same numbers is left alone, a damaged one replaced; one with other numbers never: throws
// check_failed.
std::string save_evaluation(const std::string& folder, const SavedEvaluation& evaluation,
                            FileSystem& files = real_file_system());
// All of a run folder, by name. A file that is torn, hostile or of another run (`run_id`) is left out and has its line
// in `problems`; without `problems` it throws.
std::vector<SavedEvaluation> load_evaluations(const std::string& folder, const std::string& run_id,
                                              std::vector<std::string>* problems = nullptr,
                                              const RunTree& tree = RunTree::disk());
// The same, with the run id that the folder's config.json tells.
std::vector<SavedEvaluation> load_evaluations(const std::string& folder, std::vector<std::string>* problems = nullptr);

}  // namespace sb
