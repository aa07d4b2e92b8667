#include "train/run_evaluator.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <filesystem>

#include "base/error.h"
#include "tasks/ngram_source.h"
#include "train/gates.h"
#include "train/network_predictor.h"
#include "train/samples.h"

namespace sb {

std::optional<Divergence> RunEvaluator::locate(const NotFinite& seen, const Task& task) {
  constexpr int most_frames = 4096;
  if (seen.frame >= most_frames) return std::nullopt;
  Batch frames;
  task.fill(seen.split, static_cast<uint64_t>(seen.sample), 1, frames);
  const TensorBatch batch = to_tensors(std::move(frames), task, storage_type(run_.config.train));
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
    throw bad_input("eval.batch", "an evaluation does not fit into the GPU's memory; free some (the run " +
                                      ("resumes after update " + std::to_string(run_.done)) +
                                      ") or a smaller number (which is another run), got " +
                                      std::to_string(run_.config.eval.batch));
  }
}

Evaluation RunEvaluator::evaluated(const Task& task, const EvaluationRequest& request) {
  return with_memory([&] {
    NetworkPredictor predictor(run_.trainer.network());
    return evaluate(predictor, task, request);
  });
}

Evaluation RunEvaluator::valid() {
  constexpr double kept_frames = 1 << 23;  // about ten bytes each
  EvaluationRequest ask = request(run_.data.select, run_.config.eval.valid_samples);
  const double frames = run_.data.task->mean_frames(run_.data.select) * static_cast<double>(ask.samples);
  if (run_.executor.is_asynchronous() && frames <= kept_frames) ask.kept = &valid_batches_;
  return evaluated(*run_.data.task, ask);
}

Measurement RunEvaluator::test_at(const Task& task, Split split, int64_t samples, const std::optional<TestPoint>& point,
                                  bool breakdowns) {
  EvaluationRequest ask = request(split, samples);
  ask.breakdowns = breakdowns && !task.has_law();
  Measurement out = measurement(evaluated(task, ask), split, task, point, breakdowns);
  if (split != Split::test) return out;
  run_.announce("ceiling");
  out.ceiling = measured_ceiling(task, split, run_.config.eval.ceiling_samples, at::get_num_threads(), run_.hooks.stop);
  return out;
}

// Returns nullopt with a warning if the outputs are not finite; the other measurements and the weights are kept.
std::optional<Measurement> RunEvaluator::tested(const Task& task, Split split, int64_t samples,
                                                const std::optional<TestPoint>& point, bool breakdowns) {
  try {
    return test_at(task, split, samples, point, breakdowns);
  } catch (const NotFinite& seen) {
    const std::string at = point ? ", " + point->axis + " " + std::to_string(point->at) : "";
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
  const Task& task = *run_.data.task;
  std::optional<Evaluation> now = last_valid;
  if (!now) {
    run_.announce("valid");
    now = valid();
    run_.report("evaluated");
  }
  out.valid = measurement(*now, run_.data.select, task, std::nullopt, false);
  run_.announce("test");
  out.test = tested(task, Split::test, eval.test_samples, std::nullopt, true);
  const TaskRow& kind = find_task(run_.config.task.kind);
  if (kind.has_reference_split) {
    run_.announce("published test");
    out.published_test = tested(task, Split::reference, eval.test_samples, std::nullopt, false);
  }
  for (const int at : eval.points) {
    run_.announce("grid");
    auto found =
        tested(*task.at(Split::test, at), Split::test, eval.grid_samples, TestPoint{kind.axis->name, at}, false);
    if (found) out.grid.push_back(std::move(*found));
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
  ask.samples = affordable_gate_samples(network, *data.task, Split::test, std::min<int64_t>(50, eval.test_samples));
  ask.batch = eval.batch;
  ask.chunk = eval.chunk;
  ask.type = storage_type(run_.config.train);
  ask.stop = run_.hooks.stop;
  GateReport gates = with_memory([&] { return record_gates(network, *data.task, ask); });
  if (!gates.figures.gates.empty()) out.gates = std::move(gates.figures);
  out.decays = std::move(gates.decays);
  out.samples =
      with_memory([&] { return record_samples(network, *data.task, Split::test, eval.chunk, run_.hooks.stop); });
  if (data.task->ngrams()) run_.announce("n-gram");
  out.baselines = measured_baselines(
      data, {out.samples_seen, eval.valid_samples, eval.test_samples, at::get_num_threads(),
             std::filesystem::path(run_.store.folder()).parent_path().string(), run_.hooks.stop, run_.hooks.warning});
}

}  // namespace sb
