// What the checks of the fused kernels share.
#pragma once
#include "check.cuh"
#include "kernels/cuda/rows.h"

namespace check {

inline constexpr int kBatch = 64, kTime = 400;  // of what is timed
inline constexpr size_t kTokens = size_t{kBatch} * kTime;

inline double bound(bool low) {
  return low ? 2e-2 : 1e-5;
}
inline sb::cuda::Element element(bool low) {
  return low ? sb::cuda::Element::bf16 : sb::cuda::Element::fp32;
}
inline std::string shape(bool low, std::initializer_list<size_t> sizes) {
  std::string text = low ? "bf16" : "fp32";
  for (size_t s : sizes) text += " " + std::to_string(s);
  return text;
}
inline double sigma(double x) {
  return 1 / (1 + std::exp(-x));
}
inline double silu(double x) {
  return x * sigma(x);
}
inline double slope_of_silu(double x) {
  return sigma(x) * (1 + x * (1 - sigma(x)));
}
inline bool same_bytes(const Memory& a, const std::vector<char>& before) {
  return download<char>(a.data, before.size()) == before;
}

// Rows of a table: bytes that must move, time, and the share of the copy rate
struct Timer {
  double rate = copy_rate();
  Timer() {
    std::printf(
        "copy inside the GPU: %.2f TB/s\n| operation | width | MB | us | TB/s | %% of the copy rate |\n"
        "|---|---|---|---|---|---|\n",
        rate / 1e12);
  }
  void row(const std::string& name, int width, double bytes, double ms) const {
    std::printf("| %s | %d | %.0f | %.1f | %.2f | %.0f |\n", name.c_str(), width, bytes / 1e6, ms * 1e3,
                bytes / ms / 1e9, 100 * bytes / (ms * 1e-3) / rate);
    std::fflush(stdout);
  }
};

}  // namespace check
