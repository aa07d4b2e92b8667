// One run from its config to its result, interruptible at any instant.
#pragma once
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "models/network.h"
#include "runs/data.h"
#include "runs/measure.h"
#include "runs/run_store.h"
#include "train/adam.h"
#include "train/executor.h"
#include "train/loader.h"
#include "train/world.h"

namespace sb {

enum class RunStatus { done, diverged, stopped };

struct TrainProgress {
  // "train" after an update; "valid", "test", "grid", "ceiling", "records", "n-gram", "saving" as each begins;
  // "evaluated" after "valid"
  std::string phase;
  int64_t update = 0, updates = 0;
  double loss = 0;
  double valid = -1;  // accuracy of the last evaluation
};

struct TrainHooks {
  std::function<void(const TrainProgress&)> progress;
  std::function<bool()> stop;                       // true: finish the step, save, return `stopped`
  std::function<void(const std::string&)> warning;  // e.g. a damaged checkpoint that was passed over
  std::function<void(bool begins)> saving;          // around each checkpoint
  int64_t shared_by = 1;                            // runs at a time on the device, as far as its starter knows
};

// The model of a run, with the sizes its task asks for.
ModelConfig network_config(const RunConfig& config, const TaskShape& task);
ModelConfig network_config(const RunConfig& config, int64_t inputs, int64_t outputs);
at::ScalarType storage_type(const TrainSection& train);  // throws where there is no such device
// Weights, gradients and moments are kept in bfloat16: the quirk, on a model that has it.
bool keeps_bf16(const RunConfig& config);
// Where a run computes; "auto" is what the machine has. The first call for a GPU makes it ready.
at::Device device_of(const TrainSection& train);

// Where a value that is not a number was first seen.
struct Divergence {
  int64_t update = 0;
  int64_t layer = -1;  // -1: encoder or decoder
  std::string tensor;
};

// The network, its optimiser and the operations of an update; an Executor puts them in order.
class Trainer {
 public:
  Trainer(const RunConfig& config, const RunData& data) : Trainer(config, data.maker->shape()) {}
  Trainer(const RunConfig& config, const TaskShape& task);

  // From here on updates are made together: their batches are this rank's rows, `real_frames` those of all rows. The
  // world outlives this.
  void join(World& world);

  // Forward, backward, clip, Adam; `update` counts from 0. What depends on the update is written to tensors first, what
  // comes of it stays in tensors: no value is read on the host. Parameters are left alone where something is not finite
  // (Adam::update).
  StepHandle step(const TensorBatch& batch, int64_t update);

  // The parts of a step, for those that record it. What is read from the host, before the operations:
  void prepare(int64_t real_frames, int64_t update);
  // All operations of an update on a batch that lies on device(); figures [3] as in StepHandle. Together with other
  // ranks they are gradients(), sum_over_ranks(), which waits, and apply().
  at::Tensor operations(const TensorBatch& batch, bool dropout);
  bool together() const { return world_ != nullptr; }
  void sum_over_ranks(const at::Tensor& loss);
  at::Tensor apply(const at::Tensor& loss);
  // The first part of these, for the first `most` of `micro_batches` (0: as configured, all); the loss, [1].
  at::Tensor gradients(const TensorBatch& batch, bool dropout, int64_t micro_batches = 0, int64_t most = 0);
  bool dropout_acts(int64_t update) const;
  double learning_rate_of(int64_t update) const;
  int64_t micro_batches() const { return micro_batches_; }
  int64_t ranks() const { return world_ != nullptr ? world_->size() : 1; }
  // Of all ranks together, where that is what the config asks for.
  int64_t micro_batches_asked() const { return may_split() ? micro_batches_ : config_.train.accumulate; }
  // Whether that number is free to be chosen (`accumulate = "auto"`), and choosing it, before the first update.
  bool may_split() const { return config_.train.accumulate == kAutomatic; }
  void split(int64_t micro_batches) { micro_batches_ = micro_batches; }
  bool can_split(int64_t micro_batches) const { return config_.train.batch % micro_batches == 0; }
  int64_t frame_grain() const;  // batches of a recorded step are padded to multiples of so many frames
  at::Device device() const { return number_.device(); }
  // What is not finite in this update, made once more with the parameters as they are.
  Divergence locate(const TensorBatch& batch, int64_t update);
  // In a forward pass alone, that of an update or, without dropout, of an evaluation; no name where all is finite, or
  // where the memory of the device does not tell.
  enum class Forward { update, evaluation };
  Divergence locate_forward(const at::Tensor& input, const at::Tensor& samples, int64_t update, Forward kind);

  Network& network() { return network_; }
  const Network& network() const { return network_; }
  Adam& adam() { return adam_; }

  // Point into the parameters, or into copies in the host's memory that last until the next call of any of these.
  std::vector<NamedBytes> weights() const;
  std::vector<NamedBytes> state() const;  // weights and both moments
  // The state in copies that no later update changes; they are there once `arrived` has returned (empty: now).
  struct Snapshot {
    std::vector<NamedBytes> tensors;
    std::function<void()> arrived;
  };
  Snapshot snapshot() const;
  void share_state(int64_t updates);             // rank 0's weights and moments, made by so many updates, to all
  std::vector<NamedBytes> state_layout() const;  // without data
  void restore(const Safetensors& file);

 private:
  at::Tensor frames_of(const TensorBatch& batch) const;
  bool sums_micro_batches() const;
  Divergence first_in(const at::Tensor& input, const at::Tensor& samples, int64_t update, Forward kind, int64_t micros);
  std::array<at::Tensor, 3> flats() const;  // weights and moments
  at::Tensor mirrored(size_t which) const;  // copied to the host; there when the device has got so far
  std::vector<NamedBytes> named(size_t which, const at::Tensor& flat) const;

  RunConfig config_;
  World* world_ = nullptr;
  int64_t micro_batches_;  // of this rank
  Network network_;
  Adam adam_;
  // [1] each, where the parameters live: a recorded step finds the values of its update here.
  at::Tensor number_;                          // int64: the update
  at::Tensor frames_;                          // int64: those of the update that have a target
  at::Tensor lr_;                              // float64
  mutable std::array<at::Tensor, 3> mirrors_;  // copies of weights and moments on the host
};

// Everything a run needs, built and checked before its folder exists: throws bad_input where the config cannot run.
struct PreparedRun {
  // `world`: this process is one of its ranks.
  explicit PreparedRun(const ResolvedConfig& resolved, World* world = nullptr);
  PreparedRun(PreparedRun&&) = delete;  // the executor refers to the trainer
  ResolvedConfig config;
  World* world;
  RunData data;
  Trainer trainer;
  std::unique_ptr<Executor> executor;
  double seconds = 0;  // building took

 private:
  PreparedRun(const ResolvedConfig& resolved, World* world, std::chrono::steady_clock::time_point began);
};

// On the rank that writes, or the only one.
RunStatus train(PreparedRun& run, RunStore& store, const TrainHooks& hooks);
// On the others: the same updates, no file.
RunStatus follow(PreparedRun& run, const TrainHooks& hooks);
// One line where so many ranks cannot share this run's updates: bad_input, before any work.
void check_world(const RunConfig& config, const RankPlace& place);

}  // namespace sb
