// Executes a run from its config to its result. A run can be interrupted at any time and resumed.
#pragma once
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "config/data.h"
#include "models/network.h"
#include "store/result_parts.h"
#include "store/run_store.h"
#include "train/adam.h"
#include "train/executor.h"
#include "train/loader.h"
#include "train/ranks/process_group.h"

namespace sb {

enum class RunStatus { done, diverged, stopped };

struct TrainProgress {
  // "train" after an update; "evaluated" after a validation. Reported at the start of each phase: "valid", "test",
  // "published test", "grid", "ceiling", "records", "n-gram", "saving".
  std::string phase;
  int64_t update = 0, updates = 0;
  double loss = 0;
  double valid = -1;                // validation accuracy of the last evaluation, or its squared error; -1: none yet
  std::string metric = "accuracy";  // name of `valid`
};

struct TrainHooks {
  std::function<void(const TrainProgress&)> progress;
  std::function<bool()> stop;                       // polled; true: finish the step, save, return `stopped`
  std::function<void(const std::string&)> warning;  // e.g. a damaged checkpoint was skipped
  std::function<void(int64_t updates)> resumed;     // called if a checkpoint after so many updates was loaded
  std::function<void(bool begins)> saving;          // called before (true) and after (false) saving a checkpoint
  int64_t shared_by = 1;                            // number of runs that share the device, if known
};

// The model of a run, with the input and output sizes of its task.
ModelConfig network_config(const RunConfig& config, const TaskShape& task);
ModelConfig network_config(const RunConfig& config, int64_t inputs, int64_t outputs);
// Type of the parameters: double with precision fp64, else float. Throws bad_input if the device is not available.
at::ScalarType storage_type(const TrainSection& train);
// Whether weights, gradients and moments are rounded to bfloat16: quirks.delta_bf16 on a model with published_in_bf16.
bool keeps_bf16(const RunConfig& config);
// The device of a run; "auto" selects the GPU if there is one. Calls prepare_gpu() for a GPU.
at::Device device_of(const TrainSection& train);

// The first place where a value is not finite.
struct Divergence {
  int64_t update = 0;
  int64_t layer = -1;  // -1: encoder or decoder
  std::string tensor;
};

// The network, its optimiser and the operations of an update. An Executor runs them.
class Trainer {
 public:
  Trainer(const RunConfig& config, const RunData& data) : Trainer(config, data.task->shape()) {}
  Trainer(const RunConfig& config, const TaskShape& task);

  // Makes this trainer one rank of a process group. From now on a batch contains only this rank's rows, but
  // `real_frames` counts the frames of all ranks. The group must outlive the trainer.
  void join(ProcessGroup& group);

  // Forward, backward, clipping and Adam. `update` counts from 0. Inputs that change with the update are written to
  // tensors first, and results stay in tensors: the host reads no value. If the loss or the gradient norm is not
  // finite, the parameters do not change (Adam::update).
  StepHandle step(const TensorBatch& batch, int64_t update);

  // The parts of a step, for an executor that captures it as a graph.
  // Writes the inputs that come from the host to their tensors. Call before the operations.
  void prepare(int64_t real_frames, int64_t update);
  // Runs all operations of an update on a batch on device(): gradients(), sum_over_ranks() if there are several ranks,
  // and apply(). Returns figures [3] as in StepHandle.
  at::Tensor operations(const TensorBatch& batch, bool dropout);
  bool together() const { return group_ != nullptr; }  // whether this is one of several ranks
  void sum_over_ranks(const at::Tensor& loss);         // sums gradients and loss; waits for the other ranks
  at::Tensor apply(const at::Tensor& loss);            // Adam; returns figures [3]
  // Forward and backward pass into the flat gradient buffer; returns the loss, [1] float64. The batch is split into
  // `micro_batches` (0: micro_batches()), of which only the first `most` are computed (0: all).
  at::Tensor gradients(const TensorBatch& batch, bool dropout, int64_t micro_batches = 0, int64_t most = 0);
  bool dropout_acts(int64_t update) const;
  double learning_rate_of(int64_t update) const;
  int64_t micro_batches() const { return micro_batches_; }  // of this rank
  int64_t ranks() const { return group_ != nullptr ? group_->size() : 1; }
  // The configured number, which is for all ranks together; with `accumulate = "auto"`, micro_batches().
  int64_t micro_batches_asked() const { return may_split() ? micro_batches_ : config_.train.accumulate; }
  // Whether the program chooses the number of micro-batches (`accumulate = "auto"`).
  bool may_split() const { return config_.train.accumulate == kAutomatic; }
  void split(int64_t micro_batches) { micro_batches_ = micro_batches; }  // call before the first update
  bool can_split(int64_t micro_batches) const { return config_.train.batch % micro_batches == 0; }
  int64_t padded(int64_t frames) const;  // captured graphs pad batches to this many frames
  at::Device device() const { return number_.device(); }
  // Repeats an update with the current parameters, without applying it, and finds the first value that is not finite.
  Divergence locate(const TensorBatch& batch, int64_t update);
  // The same for a forward pass only: that of an update, or that of an evaluation, which has no dropout. `tensor` is
  // empty if all values are finite, or if the device's memory does not suffice to check them.
  enum class Forward { update, evaluation };
  Divergence locate_forward(const at::Tensor& input, const at::Tensor& samples, int64_t update, Forward kind);
  bool randomises_positions() const { return config_.train.position_stretch > 1; }

  Network& network() { return network_; }
  const Network& network() const { return network_; }
  Adam& adam() { return adam_; }

  // The returned pointers point into the parameters or, for a GPU, into host copies. Host copies are valid until the
  // next call of weights(), state() or snapshot().
  std::vector<NamedBytes> weights() const;
  std::vector<NamedBytes> state() const;  // weights and both moments
  // Copies of the state that later updates do not change, complete after arrived() returns (empty: already complete).
  struct Snapshot {
    std::vector<NamedBytes> tensors;
    std::function<void()> arrived;
  };
  Snapshot snapshot() const;
  void share_state(int64_t updates);             // broadcasts rank 0's state, after this many updates, to all ranks
  std::vector<NamedBytes> state_layout() const;  // names, types and shapes of state(), without data
  void restore(const Safetensors& file);

 private:
  at::Tensor frames_of(const TensorBatch& batch) const;
  bool sums_micro_batches() const;
  // `positions`: of the update; undefined: plain ones.
  Divergence first_in(const at::Tensor& input, const at::Tensor& samples, const at::Tensor& positions, int64_t update,
                      Forward kind, int64_t micros);
  std::array<at::Tensor, 3> flats() const;  // weights and moments
  at::Tensor mirrored(size_t which) const;  // starts an asynchronous copy of flats()[which] to the host
  std::vector<NamedBytes> named(size_t which, const at::Tensor& flat) const;

  RunConfig config_;
  bool fixed_frames_;  // of every training sample
  ProcessGroup* group_ = nullptr;
  int64_t micro_batches_;  // of this rank
  Network network_;
  Adam adam_;
  // [1] each, on the device of the parameters: a captured graph reads the values of its update here.
  at::Tensor number_;                          // int64: the update
  at::Tensor frames_;                          // int64: frames of the update that have a target
  at::Tensor lr_;                              // float64
  mutable std::array<at::Tensor, 3> mirrors_;  // copies of weights and moments on the host
};

// Everything that a run needs, built and checked before the run's folder is created.
struct PreparedRun {
  // `group`: null, or the group of which this process is a rank. Throws bad_input if the config cannot run.
  explicit PreparedRun(const ResolvedConfig& resolved, ProcessGroup* group = nullptr);
  PreparedRun(PreparedRun&&) = delete;  // the executor refers to the trainer
  ResolvedConfig config;
  ProcessGroup* group;
  RunData data;
  Trainer trainer;
  std::unique_ptr<Executor> executor;
  double seconds = 0;  // time that the constructor took

 private:
  PreparedRun(const ResolvedConfig& resolved, ProcessGroup* group, std::chrono::steady_clock::time_point began);
};

// Trains and evaluates the run, and writes its files; for a single process, or for rank 0.
RunStatus train(PreparedRun& run, RunStore& store, const TrainHooks& hooks);
// Makes the same updates without writing files; for the other ranks.
RunStatus follow(PreparedRun& run, const TrainHooks& hooks);
// Throws bad_input if this many ranks cannot share the updates of this run.
void check_world(const RunConfig& config, const RankPlace& place);

}  // namespace sb
