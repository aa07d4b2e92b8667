// A run in progress: its parts and its progress.
#pragma once
#include <chrono>
#include <map>
#include <string>

#include "store/run_store.h"
#include "train/trainer.h"

namespace sb {

// Time and frames spent on the run by all processes so far, as recorded in checkpoints.
struct Spent {
  double train_seconds = 0, total_seconds = 0;
  double frames = 0;  // trained on

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
  ProcessGroup* const group;  // null: this process runs alone

  int64_t done = 0;             // updates made, with their results read
  bool evaluated = false;       // whether the network was evaluated after the last update
  double loss = 0, valid = -1;  // last training loss; last accuracy or squared error on valid
  Spent spent;                  // total_seconds: only of earlier processes
  const double prepared;        // seconds that PreparedRun took, before `began`
  const Clock::time_point began = Clock::now();

  Spent spent_so_far() const;  // including this process
  bool asked_to_stop() const { return hooks.stop && hooks.stop(); }
  void report(const std::string& phase) const;
  void announce(const std::string& phase) const;  // like report(), but throws Stopped if the run is asked to stop
  void warn(const std::string& line) const;
};

double seconds_since(RunContext::Clock::time_point began);

}  // namespace sb
