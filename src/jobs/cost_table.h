// Cost of runs on machines with measured rates: configs/rates.toml.
#pragma once
#include <functional>
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
  DeviceKind device = DeviceKind::cpu;
  std::string name, source;
};

// Expected number of frames of a run.
struct RunFrames {
  double training = 0, evaluation = 0;
};
RunFrames frames_of(const RunConfig& run);

class CostTable {
 public:
  // Training FLOPs per frame of such a network; 0 if there is none.
  using Flops = std::function<double(const MeasuredRate&)>;

  CostTable() = default;
  CostTable(std::string_view text, const std::string& path, const Flops& flops);
  // Reads the rates in the folder of shipped configs. If `folder` is empty (not found), the table has no rates.
  static CostTable shipped(const std::string& folder, const Flops& flops);

  // Estimated seconds of the run if the share `left` of its updates remains; `flops`: training FLOPs per frame. nullopt
  // if no rate of the device is known.
  std::optional<double> seconds(const RunConfig& run, double flops, double left = 1) const;
  std::optional<double> seconds_on(DeviceKind device, const RunConfig& run, double flops, double left = 1) const;
  const std::vector<MeasuredMachine>& machines() const { return machines_; }

 private:
  std::vector<MeasuredMachine> machines_;
  std::vector<MeasuredRate> rates_;
};

}  // namespace sb
