// Measures the kernels against the same mathematics in plain ATen operations and against what the machine can do.
// A kernel is timed only after its result at that shape was compared with the plain form in double.
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
  std::string only;         // kernels whose name contains this
  int width = 0, time = 0;  // 0: a sweep
  double seconds = 0.2;     // least time spent on each measurement
};

// Seconds a call, best of several; absent where it was not measured.
struct KernelTimes {
  std::optional<double> forward, both;  // both: forward and backward
};

struct KernelRow {
  std::string kernel;
  int64_t width, time, batch;
  std::optional<double> error;      // largest relative difference from the plain form in double; absent: not made
  bool gradients_compared;          // false where the plain form's graph would not fit in memory
  KernelTimes ours, loop, chunked;  // loop: plain ATen (over time, for a recurrence); chunked: recurrences only
  std::string bound;  // "gemm" (arithmetic) or "copy" (memory): the machine's rate that this kernel meets first
  double share_forward, share_both;  // of that rate
};

struct MachineRates {
  double gemm;  // floating-point operations a second, float, 1024 x 1024 x 1024
  double copy;  // bytes read and written a second, larger than the caches
};
double measure_gemm_rate(const KernelBenchOptions& options);
MachineRates measure_rates(const KernelBenchOptions& options);

// `done` sees every row as soon as it is measured. Throws Error(check_failed) where a kernel is wrong.
using RowSink = std::function<void(const KernelRow&)>;
std::vector<KernelRow> bench_kernels(const KernelBenchOptions& options, const MachineRates& rates,
                                     const RowSink& done = {});

// What a benchmark of other things is made of.
struct BenchShape {
  int64_t width, time, batch;
};
std::vector<BenchShape> bench_shapes(const KernelBenchOptions& options);
// Best time of a call, after one call to warm up; a slow call is measured once.
double best_seconds(const KernelBenchOptions& options, const std::function<void()>& call);
// The largest difference of any two tensors, relative to the largest expected value; infinite where one is not a
// number.
double largest_difference(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected);
inline constexpr double kGraphLimit = 3.5e8;  // elements; a plain form's graph is not made beyond
void check_error(const KernelRow& row);       // throws where float is further from double than rounding takes it

}  // namespace sb
