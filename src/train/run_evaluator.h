// Evaluations of a run: the validation accuracy during training, and all measurements of the result at the end.
#pragma once
#include <deque>
#include <functional>
#include <optional>

#include "store/result_parts.h"
#include "tasks/evaluate.h"
#include "train/run_context.h"

namespace sb {

class RunEvaluator {
 public:
  // `save`: writes a checkpoint; called before an evaluation throws because it does not fit into the GPU's memory.
  RunEvaluator(RunContext& run, std::function<void()> save) : run_(run), save_(std::move(save)) {}

  Evaluation valid();
  // Adds all measurements to `out`: validation (`last_valid`, or a new one if absent), test, grid, gates, samples
  // and baselines. Throws Stopped if the run is asked to stop.
  void add_all(Result& out, const std::optional<Evaluation>& last_valid);
  // Finds the first place in the network where an evaluation of this task is not finite; nullopt if it is not found.
  std::optional<Divergence> locate(const NotFinite& seen, const Task& task);

 private:
  EvaluationRequest request(Split split, int64_t samples) const;
  template <class Call>
  auto with_memory(const Call& call);
  Evaluation evaluated(const Task& task, const EvaluationRequest& request);
  Measurement test_at(const Task& task, Split split, int64_t samples, const std::optional<TestPoint>& point,
                      bool breakdowns);
  std::optional<Measurement> tested(const Task& task, Split split, int64_t samples,
                                    const std::optional<TestPoint>& point, bool breakdowns);
  void add_records(Result& out);

  RunContext& run_;
  std::function<void()> save_;
  std::deque<Batch> valid_batches_;  // kept for later evaluations, if updates run asynchronously
};

}  // namespace sb
