// Learning rate of an update: linear warm-up, then a cosine to 0.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace sb {

struct Schedule {
  double peak = 1e-3;
  int64_t warmup = 0;  // updates
  int64_t total = 1;   // updates
  // The published code multiplies by update / warmup, so its first update does nothing; ours starts one step up the
  // ramp.
  bool first_is_zero = false;
};

inline double learning_rate(const Schedule& s, int64_t update) {
  if (update < s.warmup) {
    const int64_t rung = s.first_is_zero ? update : update + 1;
    return s.peak * static_cast<double>(rung) / static_cast<double>(s.warmup);
  }
  const double done = static_cast<double>(update - s.warmup) / static_cast<double>(s.total - s.warmup);
  return s.peak * (1 + std::cos(std::numbers::pi * done)) / 2;
}

}  // namespace sb
