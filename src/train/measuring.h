// What a run measures with its network: on valid as it goes, and at its end all that its result holds.
#pragma once
#include <deque>
#include <functional>
#include <optional>

#include "runs/measure.h"
#include "tasks/evaluate.h"
#include "train/run_context.h"

namespace sb {

class Measuring {
 public:
  // `save`: called before an evaluation that no memory holds ends the program.
  Measuring(RunContext& run, std::function<void()> save) : run_(run), save_(std::move(save)) {}

  Evaluation valid();
  // Valid as it was measured last, test, gaps, gates, samples and baselines. Throws Stopped.
  void add_all(Result& out, const std::optional<Evaluation>& last_valid);
  // Where in the network the outputs of an evaluation of this task cease to be finite; nothing where it cannot be seen.
  std::optional<Divergence> locate(const NotFinite& seen, const TaskConfig& task);

 private:
  EvaluationRequest request(Split split, int64_t samples) const;
  template <class Call>
  auto with_memory(const Call& call);
  Evaluation evaluated(const TaskConfig& task, const EvaluationRequest& request);
  Measurement test_at(const TaskConfig& task, Split split, int64_t samples, std::optional<int> gap, bool breakdowns);
  std::optional<Measurement> tested(const TaskConfig& task, Split split, int64_t samples, std::optional<int> gap,
                                    bool breakdowns);
  void add_records(Result& out);

  RunContext& run_;
  std::function<void()> save_;
  std::deque<Batch> valid_batches_;  // made once where the host has other things to do
};

}  // namespace sb
