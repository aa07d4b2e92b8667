// Measures the kernels against the same mathematics in plain ATen operations and against what the machine can do.
// A kernel is timed only after its result at that shape was compared with the plain form in double.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sb {

struct KernelBenchOptions {
  bool quick = false;             // two widths, two lengths, few tokens
  std::string only;               // kernels whose name contains this
  double seconds = 0.2;           // least time spent on each measurement
  std::function<void()> between;  // called between measurements; may throw to stop
};

// Seconds a call, best of several; absent where it was not measured.
struct KernelTimes {
  std::optional<double> forward, both;  // both: forward and backward
};

struct KernelRow {
  std::string kernel;
  int64_t width, time, batch;
  double error;                     // largest relative difference from the plain form in double
  bool gradients_compared;          // false where the plain form's graph would not fit in memory
  KernelTimes ours, loop, chunked;  // loop: plain ATen (over time, for a recurrence); chunked: recurrences only
  std::string bound;  // "gemm" (arithmetic) or "copy" (memory): the machine's rate that this kernel meets first
  double share_forward, share_both;  // of that rate
};

struct KernelBench {
  int threads;
  double gemm_rate;  // floating-point operations a second, float, 1024 x 1024 x 1024
  double copy_rate;  // bytes read and written a second, larger than the caches
  std::vector<KernelRow> rows;
};

// `done` sees every row as soon as it is measured. Throws Error(check_failed) where a kernel is wrong.
KernelBench bench_kernels(const KernelBenchOptions& options, const std::function<void(const KernelRow&)>& done = {});

}  // namespace sb
