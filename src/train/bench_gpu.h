// Whole train steps on a GPU, on random data, beside what others' code was measured to take.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runs/config.h"

namespace sb {

// A step of the models' published layers in PyTorch: bfloat16 autocast, fused Adam, the whole step in one CUDA graph.
// Measured on one H200 with PyTorch 2.11, Triton 3.6, fla and mamba_ssm; batch 64, 8 layers, 1,601 classes.
struct PeerStep {
  std::string model;
  int width = 0, time = 0;
  double ms = 0, tokens_per_second = 0;
  double gibibytes = 0;  // most memory at a time
};
const std::vector<PeerStep>& peer_steps();

struct GpuBenchRequest {
  std::vector<std::string> models;
  std::vector<int> widths;  // none: 256, 1024 and the paper's of each model
  std::vector<int> times;   // frames; none: 400 and 1300
  Precision precision = Precision::amp;
  int batch = 64, layers = 8;
  int repeats = 20;
  std::function<void(const std::string& line)> progress;
};

struct GpuBenchRow {
  std::string model;
  int width = 0, time = 0;
  Precision precision = Precision::amp;
  int64_t params = 0;
  double tokens_per_second = 0, ms = 0;
  double mfu = 0;  // model FLOPs over the card's measured rate of bf16 products
  int64_t peak_bytes = 0;
  double loss = 0;      // of the last step: finite, or nothing was measured
  std::string failure;  // why there is no figure
  std::optional<PeerStep> peer;
};

struct GpuBench {
  double product_flops = 0;  // a second, measured: bf16, 8192 x 8192 x 8192
  double copy_bytes = 0;     // a second, read and written
  std::vector<GpuBenchRow> rows;
};

// Throws bad_input where there is no GPU to use.
GpuBench bench_gpu(const GpuBenchRequest& request);

// The width of the paper's largest network of this model.
int paper_width(const std::string& model);

}  // namespace sb
