// Benchmarks the CPU kernels against the same mathematics in plain ATen operations, and against the machine's peak
// rates. Before a kernel is timed, its result at that shape is compared with the plain form in double.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sb {

struct KernelBenchOptions {
  bool quick = false;       // two widths, two lengths, few tokens
  std::string only;         // measure only kernels whose name contains this
  int width = 0, time = 0;  // 0: several values
  double seconds = 0.2;     // minimum time for each measurement
};

// Seconds per call, best of several; absent if not measured.
struct KernelTimes {
  std::optional<double> forward, both;  // both: forward and backward
};

struct KernelRow {
  std::string kernel;
  int64_t width, time, batch;
  std::optional<double> error;       // largest relative difference from the plain form in double; absent: not compared
  bool gradients_compared;           // false if the autograd graph of the plain form would not fit into memory
  KernelTimes ours, loop, chunked;   // loop: plain ATen (over time, for a recurrence); chunked: recurrences only
  std::string bound;                 // "gemm" (arithmetic) or "copy" (memory): the rate that limits this kernel
  double share_forward, share_both;  // achieved share of the limiting rate
};

struct MachineRates {
  double gemm;  // floating-point operations per second: float matrices of 1024 x 1024
  double copy;  // bytes read and written per second: a copy larger than the caches
};
double measure_gemm_rate(const KernelBenchOptions& options);
MachineRates measure_rates(const KernelBenchOptions& options);

// Calls `done` with each row after its measurement. Throws Error(check_failed) if a kernel's result is wrong.
using RowSink = std::function<void(const KernelRow&)>;
std::vector<KernelRow> bench_kernels(const KernelBenchOptions& options, const MachineRates& rates,
                                     const RowSink& done = {});

// Parts for other benchmarks.
struct BenchShape {
  int64_t width, time, batch;
};
std::vector<BenchShape> bench_shapes(const KernelBenchOptions& options);
// Best time of several calls, after one call to warm up. A slow call is measured only once.
double best_seconds(const KernelBenchOptions& options, const std::function<void()>& call);
// Returns the largest difference of any pair of tensors, relative to its largest expected value; infinity for NaN.
double largest_difference(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected);
inline constexpr double kGraphLimit = 3.5e8;  // maximum elements of a plain form's autograd graph
void check_error(const KernelRow& row);       // throws if row.error exceeds float's rounding error

}  // namespace sb
