// Whole train steps on a GPU, on random data.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runs/config.h"

namespace sb {

struct GpuBenchCase {
  std::string model;
  int width = 0, time = 0;  // frames
};

struct GpuBenchRequest {
  std::vector<GpuBenchCase> cases;
  Precision precision = Precision::amp;
  int batch = 64, layers = 8;
  int repeats = 20;
  std::function<void(const std::string& line)> progress;
};

struct GpuBenchRow {
  GpuBenchCase of;
  Precision precision = Precision::amp;
  int64_t params = 0;
  double tokens_per_second = 0, ms = 0;
  double mfu = 0;  // model FLOPs over the card's measured rate of bf16 products
  int64_t peak_bytes = 0;
  double loss = 0;      // of the last step: finite, or nothing was measured
  std::string failure;  // why there is no figure
};

struct GpuBench {
  double product_flops = 0;  // a second, measured: bf16, 8192 x 8192 x 8192
  double copy_bytes = 0;     // a second, read and written
  std::vector<GpuBenchRow> rows;
};

// Throws bad_input where there is no GPU to use.
GpuBench bench_gpu(const GpuBenchRequest& request);

}  // namespace sb
