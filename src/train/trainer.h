// One run from its config to its result, interruptible at any instant.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "models/network.h"
#include "runs/data.h"
#include "runs/measure.h"
#include "runs/run_store.h"
#include "train/adam.h"
#include "train/loader.h"

namespace sb {

enum class RunStatus { done, diverged, stopped };

struct TrainProgress {
  // "train" after an update; "valid", "test", "grid", "ceiling", "records" as each begins; "evaluated" after "valid"
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
};

// The model of a run, with the sizes its task asks for.
ModelConfig network_config(const RunConfig& config, const TaskShape& task);
ModelConfig network_config(const RunConfig& config, int64_t inputs, int64_t outputs);
at::ScalarType storage_type(const TrainSection& train);  // throws where this build cannot run the precision or device

// Where a value that is not a number was first seen.
struct Divergence {
  int64_t update = 0;
  int64_t layer = -1;  // -1: encoder or decoder
  std::string tensor;
};

// One update at a time over micro-batches; what `train` loops over and what `bench train` times.
class Trainer {
 public:
  Trainer(const RunConfig& config, const RunData& data);

  struct Step {
    double loss = 0, norm = 0, lr = 0;
    bool finite = true;
  };
  // Forward, backward, clip, Adam; `update` counts from 0. Parameters are left alone where something is not finite.
  Step step(const TensorBatch& batch, int64_t update);
  Divergence locate(const TensorBatch& batch, int64_t update);

  Network& network() { return network_; }
  const Network& network() const { return network_; }
  Adam& adam() { return adam_; }

  std::vector<NamedBytes> weights() const;
  std::vector<NamedBytes> state() const;  // weights and both moments
  void restore(const Safetensors& file);

 private:
  bool dropout_acts(int64_t update) const;

  RunConfig config_;
  Network network_;
  Adam adam_;
};

// Everything a run needs, built and checked before its folder exists: throws bad_input where the config cannot run.
struct PreparedRun {
  explicit PreparedRun(const ResolvedConfig& resolved);
  ResolvedConfig config;
  RunData data;
  Trainer trainer;
  double seconds = 0;  // building took

 private:
  PreparedRun(const ResolvedConfig& resolved, std::chrono::steady_clock::time_point began);
};

RunStatus train(PreparedRun& run, RunStore& store, const TrainHooks& hooks);

}  // namespace sb
