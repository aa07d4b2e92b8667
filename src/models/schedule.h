// Learning rate of update s = 0, 1, … as a fraction of the largest: s / warm up to `warm`, then half a cosine to 0 at
// `total`.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace sb {

inline double warmup_cosine(int64_t update, int64_t warm, int64_t total) {
  if (update < warm) return static_cast<double>(update) / static_cast<double>(warm);
  const double share = static_cast<double>(update - warm) / static_cast<double>(total > warm ? total - warm : 1);
  return (1 + std::cos(std::numbers::pi * (share < 1 ? share : 1))) / 2;
}

}  // namespace sb
