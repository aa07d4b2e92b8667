// Whole train steps on a GPU, on random data.
#pragma once
#include <functional>
#include <optional>
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

// An operation of a step, alone: its kernels one behind the other without the host's part.
struct GpuKernelRow {
  struct Pass {
    double ms = 0;
    double operations = 0, bytes = 0;  // what it cannot do without (kernels/calls.h)
    std::string bound;                 // "product" or "copy": which of the card's rates it meets first
    double share = 0;                  // of that rate
  };
  GpuBenchCase of;
  std::string kernel, shape;  // of its tensors
  int64_t calls = 0;          // a step
  Pass forward;
  std::optional<Pass> backward;  // absent: it has none of its own
  std::string failure;           // why there is no figure
  double step_ms() const { return static_cast<double>(calls) * (forward.ms + (backward ? backward->ms : 0)); }
};

// Throws bad_input where there is no GPU to use.
GpuBench bench_gpu(const GpuBenchRequest& request);
// The rates of the card, and the operations of a step of each case in the order in which it first makes them.
struct GpuKernelBench {
  double product_flops = 0, copy_bytes = 0;
  std::vector<GpuKernelRow> rows;
};
GpuKernelBench bench_gpu_kernels(const GpuBenchRequest& request);

}  // namespace sb
