// Evaluates a run from its folder: final weights, a checkpoint or weights from elsewhere, on any split or test point.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/data.h"
#include "models/network.h"
#include "store/evaluation_file.h"
#include "store/open_run.h"
#include "train/gates.h"

namespace sb {

struct StoredRunRequest {
  Split split = Split::test;
  std::vector<int> points;  // values of the task's test axis; empty: the task's own distribution
  int64_t samples = 0;      // 0: as in the config
  bool gates = false;
  bool checkpoint = false;  // the newest checkpoint instead of the final weights
  std::string weights;      // file to use instead of the run's own weights; empty: none
};

class StoredRunEvaluator {
 public:
  // `run` must outlive the evaluator. Without a GPU, a GPU run is evaluated on the CPU in fp32. Throws bad_input if the
  // task does not have the split.
  StoredRunEvaluator(StoredRunRequest request, const OpenRun& run);

  // One line if device or precision differ from those of the run; else empty.
  std::string computed_note() const;
  // Calls `warning` with one line for each tensor that does not fit and for each damaged checkpoint. Throws bad_input
  // if no weights can be loaded.
  void load_weights(const std::function<void(const std::string&)>& warning);
  const SavedEvaluation& request() const { return out_; }  // without measurements
  SavedEvaluation run();

 private:
  void load_file(const std::function<void(const std::string&)>& warning);
  void load_checkpoint(const std::function<void(const std::string&)>& warning);
  void expect_fit(const Safetensors& file, const std::function<void(const std::string&)>& warning) const;
  void expect_final_weights() const;
  std::vector<std::pair<std::shared_ptr<const Task>, std::optional<int>>> tasks() const;
  Measurement evaluate_at(const Task& task, std::optional<int> at);
  GateRequest gate_request(const Task& task) const;

  StoredRunRequest request_;
  const OpenRun& run_;
  const RunConfig& config_;
  RunData data_;
  TrainSection train_;  // where and how the network is computed here
  at::ScalarType type_;
  Network network_;
  SavedEvaluation out_;
};

}  // namespace sb
