// Estimates the time of runs: by measured rates (configs/rates.toml), corrected by the time of finished runs.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_file.h"

namespace sb {

// Training speed in frames per second, of one network on one machine.
struct MeasuredRate {
  DeviceKind device = DeviceKind::cpu;
  std::string model;
  int64_t width = 0, layers = 0, inputs = 0, outputs = 0;
  double frames = 0;  // frames of a sequence
  double rate = 0;
  double eval_speed = 1;     // evaluation speed / training speed
  double start_seconds = 0;  // seconds of a run besides updates and evaluations
  double flops = 0;          // training FLOPs per frame; 0: not known, and the row is not used
};

struct MeasuredMachine {
  std::string name, source;
};

// Expected number of frames of a run.
struct RunFrames {
  double training = 0, evaluation = 0;
  double sample = 0;  // of one training sample
};
// Makes a task of most kinds (size_of_task), so callers keep the result.
RunFrames frames_of(const RunConfig& run);

// Time of a finished run.
struct TimeTaken {
  double seconds = 0;
  bool diverged = false;
  std::optional<int64_t> shared_by = {};  // concurrent runs on its device, including this run; absent: not known
  std::optional<int64_t> threads = {};    // of a run on a CPU; absent: not known
};

constexpr double rated_cores = 2;  // of the CPUs whose rates are known, all of them busy

class CostTable {
 public:
  // Training FLOPs per frame of such a network; 0 if there is none.
  using Flops = std::function<double(const MeasuredRate&)>;

  CostTable() = default;
  CostTable(std::string_view text, const std::string& path, const Flops& flops);
  // Reads the rates in the folder of shipped configs. If `folder` is empty (not found), the table has no rates.
  static CostTable shipped(const std::string& folder, const Flops& flops);

  // A finished run corrects the estimates of runs like it. The time of runs that shared a GPU is divided by their
  // number; on a CPU, time is multiplied by the run's share of rated_cores. Diverged runs, and runs without this number
  // or without threads, are ignored. `frames`: frames_of(run). `flops`:
  // training FLOPs per frame.
  void learn(const RunConfig& run, const RunFrames& frames, double flops, const TimeTaken& taken);
  // Estimated seconds of a run that has its GPU, or rated_cores, to itself, if the share `left` of its updates remains:
  // by rates times (time taken / time by rates) of finished runs of the same device, precision, model and size, else of
  // the same model, else of the same device. nullopt if no rate of the device is known.
  std::optional<double> seconds(const RunConfig& run, const RunFrames& frames, double flops, double left = 1) const;
  // By rates alone.
  std::optional<double> seconds_on(DeviceKind device, const RunConfig& run, const RunFrames& frames, double flops,
                                   double left = 1) const;
  const std::vector<MeasuredMachine>& machines() const { return machines_; }

 private:
  struct Measured {
    double taken = 0, by_rates = 0;  // seconds
  };
  std::vector<MeasuredMachine> machines_;
  std::vector<MeasuredRate> rates_;
  std::map<std::string, Measured> measured_;  // by what runs have in common
};

}  // namespace sb
