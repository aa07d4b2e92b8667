// Benchmark of whole training steps, and of their single operations, on a GPU with random data.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"

namespace sb {

struct GpuBenchCase {
  std::string model;
  int width = 0, time = 0;  // time: frames per sequence
  int batch = 64;           // sequences per step
};

struct GpuBenchRequest {
  std::vector<GpuBenchCase> cases;
  Precision precision = Precision::amp;
  int layers = 8;
  int heads = 0;  // 0: the default of the width
  int repeats = 20;
  std::function<void(const std::string& line)> progress;
};

struct GpuBenchRow {
  GpuBenchCase of;
  Precision precision = Precision::amp;
  int64_t params = 0;
  double tokens_per_second = 0, ms = 0;
  double mfu = 0;  // model FLOP/s / the GPU's measured rate of bf16 matrix products
  int64_t peak_bytes = 0;
  double loss = 0;      // of the last step; a step whose loss is not finite is a failure
  std::string failure;  // why there are no measurements; empty on success
};

struct GpuBench {
  double product_flops = 0;  // per second, measured: bf16, 8192 x 8192 matrices
  double copy_bytes = 0;     // per second, measured: bytes read plus bytes written
  std::vector<GpuBenchRow> rows;
};

// One operation of a step, measured alone as a CUDA graph, so without the host's overhead.
struct GpuKernelRow {
  struct Pass {
    double ms = 0;
    double operations = 0, bytes = 0;  // minimum work (CallWork in kernels/calls.h)
    std::string bound;                 // "product" or "copy": the GPU rate that limits the operation
    double share = 0;                  // achieved share of that rate
  };
  GpuBenchCase of;
  std::string kernel, shape;  // shape: of the operation's tensors
  int64_t calls = 0;          // per step
  Pass forward;
  std::optional<Pass> backward;  // absent if the operation has no backward kernel
  std::string failure;           // why there are no measurements; empty on success
  double step_ms() const { return static_cast<double>(calls) * (forward.ms + (backward ? backward->ms : 0)); }
};

// Throws bad_input if there is no usable GPU.
GpuBench bench_gpu(const GpuBenchRequest& request);
// The GPU's rates (see GpuBench), and for each case the operations of a step, in the order of their first calls.
struct GpuKernelBench {
  double product_flops = 0, copy_bytes = 0;
  std::vector<GpuKernelRow> rows;
};
GpuKernelBench bench_gpu_kernels(const GpuBenchRequest& request);

}  // namespace sb
