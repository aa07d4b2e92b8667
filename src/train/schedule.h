// Learning-rate schedule: linear warm-up, then cosine decay to 0.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace sb {

struct Schedule {
  double peak = 1e-3;
  int64_t warmup = 0;  // updates
  int64_t total = 1;   // updates
  // Use peak * update / warmup during warm-up, as the published code does: the first update then has rate 0. The
  // default is peak * (update + 1) / warmup.
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
