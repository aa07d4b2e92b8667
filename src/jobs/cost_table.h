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
// Builds the task, which can be slow, unless its kind knows its sizes (TaskRow::size): callers should keep the result.
RunFrames frames_of(const RunConfig& run);

// Time of a finished run.
struct TimeTaken {
  double seconds = 0;
  bool diverged = false;
  std::optional<int64_t> shared_by = {};  // concurrent runs on its device, including this run; absent: not known
  std::optional<int64_t> threads = {};    // of a run on a CPU; absent: not known
};

constexpr double rated_cores = 2;  // busy cores for which the CPU rates were measured

class CostTable {
 public:
  // Training FLOPs per frame of such a network; 0 if there is none.
  using Flops = std::function<double(const MeasuredRate&)>;

  CostTable() = default;
  CostTable(std::string_view text, const std::string& path, const Flops& flops);
  // Reads the rates in the folder of shipped configs. If `folder` is empty (not found), the table has no rates.
  static CostTable shipped(const std::string& folder, const Flops& flops);

  // Uses the time of a finished run to correct the estimates of similar runs. On a GPU, the time is divided by the
  // number of runs that shared it; on a CPU, it is multiplied by threads / rated_cores. Diverged runs are ignored, and
  // runs whose number of sharing runs (GPU) or threads (CPU) is not known. `frames`: frames_of(run). `flops`: training
  // FLOPs per frame.
  void learn(const RunConfig& run, const RunFrames& frames, double flops, const TimeTaken& taken);
  // Estimated seconds of a run that has its GPU, or rated_cores, to itself. `left`: share of its updates that remains.
  // The estimate by rates is multiplied by (time taken / time by rates) of finished runs. Only the most similar ones
  // count: same device, precision, model and size; else without the size; else also without the model. nullopt if no
  // rate of the device is known.
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
