#include "train/run_evaluator.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <filesystem>

#include "base/error.h"
#include "train/gates.h"
#include "train/network_predictor.h"
#include "train/samples.h"

namespace sb {

std::optional<Divergence> RunEvaluator::locate(const NotFinite& seen, const TaskConfig& task) {
  constexpr int most_frames = 4096;
  if (seen.frame >= most_frames) return std::nullopt;
  const std::shared_ptr<const Task> measured = make_task(run_.data, task);
  Batch frames;
  measured->fill(seen.split, static_cast<uint64_t>(seen.sample), 1, frames);
  const TensorBatch batch = to_tensors(std::move(frames), *measured, storage_type(run_.config.train));
  const at::Tensor input = batch.input.narrow(1, 0, std::min<int64_t>(seen.frame + 1, batch.input.size(1)));
  run_.executor.release();
  Divergence found = run_.trainer.locate_forward(input, batch.samples, run_.done, Trainer::Forward::evaluation);
  return found.tensor.empty() ? std::nullopt : std::optional(std::move(found));
}

EvaluationRequest RunEvaluator::request(Split split, int64_t samples) const {
  EvaluationRequest out;
  out.split = split;
  out.samples = samples;
  out.batch = run_.config.eval.batch;
  out.chunk = run_.config.eval.chunk;
  out.padding_correct = run_.config.quirks.padding_correct;
  out.threads = at::get_num_threads();
  out.stop = run_.hooks.stop;
  return out;
}

// Returns call(). If the GPU's memory does not suffice, releases the memory of training steps and tries again.
template <class Call>
auto RunEvaluator::with_memory(const Call& call) {
  try {
    return call();
  } catch (const c10::OutOfMemoryError&) {
    run_.executor.release();
  }
  try {
    return call();
  } catch (const c10::OutOfMemoryError&) {
    save_();
    throw bad_input("eval.batch", "the GPU's memory does not hold an evaluation, expected more of it free (the run " +
                                      ("goes on after update " + std::to_string(run_.done)) +
                                      ") or a smaller number (which is another run), got " +
                                      std::to_string(run_.config.eval.batch));
  }
}

Evaluation RunEvaluator::evaluated(const TaskConfig& task, const EvaluationRequest& request) {
  return with_memory([&] {
    NetworkPredictor predictor(run_.trainer.network());
    return evaluate(predictor, *make_task(run_.data, task), request);
  });
}

Evaluation RunEvaluator::valid() {
  constexpr double kept_frames = 1 << 23;  // about ten bytes each
  EvaluationRequest ask = request(run_.data.select, run_.config.eval.valid_samples);
  const double frames = run_.data.task->mean_frames(run_.data.select) * static_cast<double>(ask.samples);
  if (run_.executor.beside_host() && frames <= kept_frames) ask.kept = &valid_batches_;
  return evaluated(run_.data.task_config, ask);
}

Measurement RunEvaluator::test_at(const TaskConfig& task, Split split, int64_t samples, std::optional<int> gap,
                                  bool breakdowns) {
  EvaluationRequest ask = request(split, samples);
  ask.breakdowns = breakdowns && task.objective == Objective::state;
  Measurement out = measurement(evaluated(task, ask), split, task, gap, breakdowns);
  if (split != Split::test) return out;
  run_.announce("ceiling");
  out.ceiling = measured_ceiling(run_.data, task, split, run_.config.eval.ceiling_samples, at::get_num_threads(),
                                 run_.hooks.stop);
  return out;
}

// Returns nullopt with a warning if the outputs are not finite; the other measurements and the weights are kept.
std::optional<Measurement> RunEvaluator::tested(const TaskConfig& task, Split split, int64_t samples,
                                                std::optional<int> gap, bool breakdowns) {
  try {
    return test_at(task, split, samples, gap, breakdowns);
  } catch (const NotFinite& seen) {
    const std::string at = gap ? ", gap " + std::to_string(*gap) : "";
    std::string place;
    if (const auto found = locate(seen, task)) {
      place = (found->layer < 0 ? ", " : ", layer " + std::to_string(found->layer) + ", ") + found->tensor;
    }
    run_.warn(seen.what() + at + place + "; the result has no accuracy of " + to_string(seen.split) + at);
    return std::nullopt;
  }
}

void RunEvaluator::add_all(Result& out, const std::optional<Evaluation>& last_valid) {
  const EvalSection& eval = run_.config.eval;
  const TaskConfig& task = run_.data.task_config;
  std::optional<Evaluation> now = last_valid;
  if (!now) {
    run_.announce("valid");
    now = valid();
    run_.report("evaluated");
  }
  out.valid = measurement(*now, run_.data.select, task, std::nullopt, false);
  run_.announce("test");
  out.test = tested(task, Split::test, eval.test_samples, std::nullopt, true);
  run_.announce("published test");
  out.published_test = tested(task, Split::reference, eval.test_samples, std::nullopt, false);
  for (const int gap : eval.gaps) {
    run_.announce("grid");
    auto point = tested(with_gap(task, Split::test, gap), Split::test, eval.grid_samples, gap, false);
    if (point) out.grid.push_back(std::move(*point));
  }
  run_.announce("records");
  add_records(out);
}

// Adds records that need the weights: gates and samples; then the baselines.
void RunEvaluator::add_records(Result& out) {
  const Network& network = run_.trainer.network();
  const RunData& data = run_.data;
  const EvalSection& eval = run_.config.eval;
  GateRequest ask;
  ask.split = Split::test;
  ask.samples =
      affordable_gate_samples(network, data, data.task_config, Split::test, std::min<int64_t>(50, eval.test_samples));
  ask.batch = eval.batch;
  ask.chunk = eval.chunk;
  ask.type = storage_type(run_.config.train);
  ask.stop = run_.hooks.stop;
  GateReport gates = with_memory([&] { return record_gates(network, data, data.task_config, ask); });
  if (!gates.figures.gates.empty()) out.gates = std::move(gates.figures);
  out.decays = std::move(gates.decays);
  out.samples = with_memory([&] { return record_samples(network, data, Split::test, eval.chunk, run_.hooks.stop); });
  run_.announce("n-gram");
  out.baselines = measured_baselines(
      data, {out.samples_seen, eval.valid_samples, eval.test_samples, at::get_num_threads(),
             std::filesystem::path(run_.store.folder()).parent_path().string(), run_.hooks.stop, run_.hooks.warning});
}

}  // namespace sb
