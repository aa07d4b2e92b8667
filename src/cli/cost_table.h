// What runs cost on machines whose rates were measured: configs/rates.toml.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runs/config_file.h"

namespace sb::cli {

// Frames a second of training, one network on one machine.
struct MeasuredRate {
  DeviceKind device = DeviceKind::cpu;
  std::string model;
  int64_t width = 0, layers = 0, inputs = 0, outputs = 0;
  double frames = 0;  // of a sequence
  double rate = 0;
  double eval_speed = 1;     // frames of evaluations a second over those of training
  double start_seconds = 0;  // of a run beside its updates and evaluations
  double flops = 0;          // of training, a frame; 0: not known, the row is not used
};

struct MeasuredMachine {
  DeviceKind device = DeviceKind::cpu;
  std::string name, source;
};

// Frames of a run, on average over the laws of its gaps.
struct RunFrames {
  double training = 0, evaluation = 0;
};
RunFrames frames_of(const RunConfig& run);

class CostTable {
 public:
  // FLOPs of training a frame of such a network; 0: there is none.
  using Flops = std::function<double(const MeasuredRate&)>;

  CostTable() = default;
  CostTable(std::string_view text, const std::string& path, const Flops& flops);
  static CostTable shipped(const Flops& flops);  // without rates where the program finds no configs

  // Seconds of the run where `left` of its updates are to be done; `flops`: of training, a frame. Nothing where no rate
  // of the device is known.
  std::optional<double> seconds(const RunConfig& run, double flops, double left = 1) const;
  std::optional<double> seconds_on(DeviceKind device, const RunConfig& run, double flops, double left = 1) const;
  const std::vector<MeasuredMachine>& machines() const { return machines_; }

 private:
  std::vector<MeasuredMachine> machines_;
  std::vector<MeasuredRate> rates_;
};

}  // namespace sb::cli
