// A run while it is being worked on: what it is made of, and how far it is.
#pragma once
#include <chrono>
#include <map>
#include <string>

#include "runs/run_store.h"
#include "train/trainer.h"

namespace sb {

// Work of all processes on the run, as far as checkpoints have kept it.
struct Spent {
  double train_seconds = 0, total_seconds = 0;
  double frames = 0;  // of training

  std::map<std::string, std::string> metadata() const;
  static Spent from(const std::map<std::string, std::string>& metadata);
};

struct RunContext {
  using Clock = std::chrono::steady_clock;

  RunContext(PreparedRun& prepared, RunStore& store, const TrainHooks& hooks);

  const ResolvedConfig& resolved;
  const RunConfig& config;
  RunStore& store;
  const TrainHooks& hooks;
  const RunData& data;
  Trainer& trainer;
  Executor& executor;
  World* const world;  // null: nobody else works on the run

  int64_t done = 0;        // updates made and read
  bool evaluated = false;  // after the last one begun
  double loss = 0, valid = -1;
  Spent spent;            // total_seconds: of the processes before this one
  const double prepared;  // seconds before `began`
  const Clock::time_point began = Clock::now();

  Spent spent_so_far() const;
  bool asked_to_stop() const { return hooks.stop && hooks.stop(); }
  void report(const std::string& phase) const;
  void announce(const std::string& phase) const;  // the same; throws Stopped where the run is to stop
  void warn(const std::string& line) const;
};

double seconds_since(RunContext::Clock::time_point began);

}  // namespace sb
