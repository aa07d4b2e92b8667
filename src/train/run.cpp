// Executes a run from its first update, or from its newest checkpoint, to its result.
#include <ATen/ATen.h>

#include <chrono>
#include <deque>

#include "base/error.h"
#include "train/checkpoint_manager.h"
#include "train/gpu.h"
#include "train/rules.h"
#include "train/run_context.h"
#include "train/run_evaluator.h"
#include "train/run_result.h"
#include "train/trainer.h"

namespace sb {
namespace {

using Clock = RunContext::Clock;

// Seconds since 1970, with milliseconds.
double unix_seconds() {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch());
  return static_cast<double>(now.count()) / 1000;
}

// An update in flight.
struct UnderWay {
  StepHandle handle;
  int64_t frames = 0;
};

bool evaluated_after(const RunConfig& config, int64_t updates) {
  if (updates == config.train.updates) return true;
  const int64_t every = config.eval.every;
  return every > 0 && updates > 0 && updates % every == 0;
}

SampleOrder order_of(const TrainSection& train) {
  return {train.order_seed, static_cast<uint64_t>(train.updates) * train.batch};
}

Order order_of(RunStatus status) {
  if (status == RunStatus::stopped) return Order::stopped;
  return status == RunStatus::done ? Order::done : Order::diverged;
}

RunStatus status_of(Order order) {
  if (order == Order::stopped) return RunStatus::stopped;
  return order == Order::done ? RunStatus::done : RunStatus::diverged;
}

// Where a run resumes.
struct Standing {
  int64_t done = 0;        // updates made
  bool evaluated = false;  // whether the last update was evaluated
};

// Broadcasts rank 0's standing, weights and moments to all ranks.
Standing hand_over(ProcessGroup& group, Trainer& trainer, Standing mine) {
  const at::Tensor words = at::empty({2}, at::kLong);
  int64_t* word = words.data_ptr<int64_t>();
  word[0] = mine.done;
  word[1] = mine.evaluated ? 1 : 0;
  group.broadcast(words);
  trainer.share_state(word[0]);
  return {word[0], word[1] != 0};
}

TensorBatch training_tensors(Batch frames, const Task& task, const TrainSection& train, bool for_gpu) {
  TensorBatch out = to_tensors(std::move(frames), task, storage_type(train), for_gpu);
  if (train.position_stretch > 1)
    out.positions = random_positions(out.frames, train.position_stretch, train.seed, for_gpu);
  return out;
}

// This rank's rows of a batch. All ranks draw the whole batch, since samples are cheap. So each rank knows the frame
// count of the longest sample and the number of frames of the update.
TensorBatch share_of(const ProcessGroup& group, const Batch& whole, const Task& task, const TrainSection& train,
                     bool for_gpu) {
  const auto [first, last] = group.rows(whole.batch);
  TensorBatch out = training_tensors(rows_of(whole, first, last), task, train, for_gpu);
  out.real_frames = asked_frames(whole, task);
  return out;
}

class Run {
 public:
  Run(PreparedRun& prepared, RunStore& store, const TrainHooks& hooks)
      : run_(prepared, store, hooks),
        train_(run_.config.train),
        data_(run_.data),
        order_(order_of(train_)),
        saving_(run_),
        measuring_(run_, [this] {
          if (!saving_.saved()) saving_.save();
        }) {}

  RunStatus work() {
    saving_.resume();
    if (run_.done > 0 && run_.hooks.resumed) run_.hooks.resumed(run_.done);
    if (run_.group == nullptr) return train_or_diverge();
    try {
      hand_over(*run_.group, run_.trainer, {run_.done, run_.evaluated});
      const RunStatus status = train_or_diverge();
      try {
        run_.group->broadcast(order_of(status));
      } catch (const GroupEnded&) {
        if (status == RunStatus::stopped) throw;  // otherwise the result is written: the other ranks do not matter
      }
      return status;
    } catch (const GroupEnded&) {
      // The weights are those of the last update that all ranks made.
      if (!saving_.saved()) saving_.save(true);
      throw;
    }
  }

 private:
  RunStatus train_or_diverge() {
    try {
      return train_and_test();
    } catch (const NotFinite& seen) {  // on validation samples: the last update has diverged
      divergence_ = measuring_.locate(seen, *data_.task).value_or(Divergence{run_.done, -1, "decoder"});
      return diverged();
    }
  }

  RunStatus train_and_test() {
    while (true) {
      if (run_.group != nullptr && run_.group->stopping()) return stop();
      if (!run_.evaluated && evaluation_due()) {
        if (!settle()) return diverged();
        // Saves before the evaluation, so that the updates are kept even if the evaluation fails; a resumed run
        // evaluates again. Writing a checkpoint may take longer than the updates between two evaluations. If the
        // previous one is still being written, skips this one.
        const bool last = begun() == train_.updates;
        if (!saving_.saved() && (last || !saving_.busy())) saving_.save();
        if (!evaluate_periodically()) return stop();
        // If the writer is busy, skips this: readers can wait, and the next checkpoint writes the rows, too.
        if (!saving_.busy()) saving_.write_rows();
        if (run_.group != nullptr) run_.group->broadcast(Order::go_on);
      }
      if (begun() == train_.updates) break;
      // Ranks stop together: all of them learn of a request in the next all_reduce().
      if (run_.group != nullptr) {
        run_.group->wish_to_stop(run_.asked_to_stop());
      } else if (run_.asked_to_stop()) {
        return settle() ? stop() : diverged();
      }
      begin_update();
      if (!settle(run_.executor.max_in_flight())) return diverged();
      const int64_t every = run_.config.run.checkpoint_every;
      if (every > 0 && begun() % every == 0) {
        if (!settle()) return diverged();
        saving_.save();
      }
    }
    return test();
  }

  bool evaluation_due() const { return evaluated_after(run_.config, begun()); }

  int64_t begun() const { return run_.done + static_cast<int64_t>(under_way_.size()); }

  bool for_gpu() const { return !run_.trainer.device().is_cpu(); }

  TensorBatch tensors_of(Batch frames, const Task& task) const {
    return training_tensors(std::move(frames), task, train_, for_gpu());
  }

  void begin_update() {
    const auto began = Clock::now();
    if (!loader_) {
      loader_ = std::make_unique<Loader>(data_, Split::train, train_.batch, begun(), train_.updates, order_);
    }
    Batch whole = loader_->next();
    int64_t frames = 0;
    for (int b = 0; b < whole.batch; ++b) frames += whole.real_frames(b);
    const Task& task = *data_.train_task(begun());
    const TensorBatch batch = run_.group == nullptr ? tensors_of(std::move(whole), task)
                                                    : share_of(*run_.group, whole, task, train_, for_gpu());
    under_way_.push_back({run_.executor.step(batch, begun()), frames});
    run_.evaluated = false;
    run_.spent.train_seconds += seconds_since(began);
  }

  // Waits until at most `under_way` updates are in flight and records the results of the others. Returns false if one
  // diverged; no later update was made.
  bool settle(size_t under_way = 0) {
    while (under_way_.size() > under_way) {
      const auto began = Clock::now();
      const StepFigures step = under_way_.front().handle.read();
      if (!step.finite) {
        under_way_.clear();
        Batch frames;
        const Task& task = *data_.train_task(run_.done);
        task.fill(Split::train, samples_of_update(order_, train_.batch, run_.done), frames);
        run_.executor.release();
        divergence_ = run_.trainer.locate(tensors_of(std::move(frames), task), run_.done);
        return false;
      }
      run_.loss = step.loss;
      run_.store.add_timing({run_.done, "train", {{"wall", unix_seconds()}}});
      run_.store.add({run_.done, "train", {{"loss", step.loss}, {"grad_norm", step.norm}, {"lr", step.lr}}});
      run_.spent.frames += static_cast<double>(under_way_.front().frames);
      under_way_.pop_front();
      ++run_.done;
      run_.spent.train_seconds += seconds_since(began);
      run_.report("train");
    }
    return true;
  }

  bool evaluate_periodically() {
    run_.report("valid");
    try {
      last_valid_ = measuring_.valid();
    } catch (const Stopped&) {
      return false;
    }
    const bool squared = data_.task->shape().loss == Loss::squared_error;
    run_.valid = squared ? last_valid_->loss : last_valid_->elements.value();
    MetricRow row{run_.done, "valid", {{squared ? "mse" : "accuracy", run_.valid}, {"loss", last_valid_->loss}}};
    if (data_.task->has_law()) row.values.emplace_back("kl", last_valid_->kl);
    run_.store.add(row);
    run_.store.add_timing({run_.done, "valid", {{"wall", unix_seconds()}}});
    run_.evaluated = true;
    run_.report("evaluated");
    return true;
  }

  RunStatus test() {
    try {
      Result result = result_of(run_, "done");
      measuring_.add_all(result, last_valid_);
      run_.report("saving");
      saving_.wait();
      result.made = made_by(run_);
      run_.store.finish(std::move(result), run_.trainer.weights(), saving_.metadata());
    } catch (const Stopped&) {
      return stop();
    }
    return RunStatus::done;
  }

  RunStatus stop() {
    saving_.save(true);
    return RunStatus::stopped;
  }

  RunStatus diverged() {
    Result out = result_of(run_, "diverged");
    out.divergence = DivergenceFigure{divergence_.update, divergence_.layer, divergence_.tensor};
    out.made = made_by(run_);
    saving_.wait();
    run_.store.finish(std::move(out), {});
    return RunStatus::diverged;
  }

  RunContext run_;
  const TrainSection& train_;
  const RunData& data_;
  const SampleOrder order_;
  std::unique_ptr<Loader> loader_;
  std::deque<UnderWay> under_way_;
  std::optional<Evaluation> last_valid_;
  Divergence divergence_;
  CheckpointManager saving_;
  RunEvaluator measuring_;
};

}  // namespace

PreparedRun::PreparedRun(const ResolvedConfig& resolved, ProcessGroup* ranks)
    : PreparedRun(resolved, ranks, Clock::now()) {}

PreparedRun::PreparedRun(const ResolvedConfig& resolved, ProcessGroup* ranks, Clock::time_point began)
    : config((check_dropout(resolved.values), resolved)),
      group(ranks),
      data(make_data(config.values)),
      trainer(config.values, data),
      executor(trainer.device().is_cpu() ? std::make_unique<CpuExecutor>(trainer) : gpu_executor(trainer)) {
  if (group != nullptr) trainer.join(*group);
  int rows = config.values.train.batch;
  if (group != nullptr) {
    const auto [first, last] = group->rows(rows);
    rows = last - first;
  }
  executor->expect(rows, data.max_train_frames(), data.task->shape());
  seconds = seconds_since(began);
}

RunStatus train(PreparedRun& run, RunStore& store, const TrainHooks& hooks) {
  return Run(run, store, hooks).work();
}

// Must match Run::train_and_test: after an evaluation, rank 0 sends whether to continue; at the end, the run's status.
RunStatus follow(PreparedRun& run, const TrainHooks& hooks) {
  const RunConfig& config = run.config.values;
  ProcessGroup& group = *run.group;
  const bool for_gpu = !run.trainer.device().is_cpu();
  Standing at = hand_over(group, run.trainer, {});
  Loader loader(run.data, Split::train, config.train.batch, at.done, config.train.updates, order_of(config.train));
  while (true) {
    if (!at.evaluated && evaluated_after(config, at.done)) {
      if (const Order order = group.broadcast(Order::go_on); order != Order::go_on) return status_of(order);
    }
    if (at.done == config.train.updates) break;
    group.wish_to_stop(hooks.stop && hooks.stop());
    const TensorBatch batch = share_of(group, loader.next(), *run.data.train_task(at.done), config.train, for_gpu);
    if (!run.executor->step(batch, at.done).read().finite || group.stopping()) break;
    at = {at.done + 1, false};
  }
  return status_of(group.broadcast(Order::go_on));
}

void check_world(const RunConfig& config, const RankPlace& place) {
  const TrainSection& t = config.train;
  if (place.size > t.batch) {
    throw bad_input(place.origin, "expected no more ranks than an update has samples (train.batch, " +
                                      std::to_string(t.batch) + "), got " + std::to_string(place.size));
  }
  if (config.quirks.sum_accumulated && t.accumulate > 1 && t.accumulate % place.size != 0) {
    throw bad_input(place.origin, "expected a number that divides train.accumulate (" + std::to_string(t.accumulate) +
                                      ") with quirks.sum_accumulated, got " + std::to_string(place.size));
  }
  if (place.size > 1 && !device_of(t).is_cpu() && group_backend(true).empty()) {
    throw bad_input("train.device", "expected cpu with several ranks, got cuda: " + world_fault(true) +
                                        "; `suite --gpus` gives each run its own GPU");
  }
}

}  // namespace sb
