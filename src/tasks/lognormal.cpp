#include "tasks/lognormal.h"

#include "base/portable.h"

namespace sb {
namespace {

constexpr double kInvSqrtTwoPi = 0.398942280401432677939946;

}  // namespace

double portable_normal_cdf(double x) {
  const double size = x < 0 ? -x : x;
  if (size > 37) return x < 0 ? 0 : 1;
  const double density = kInvSqrtTwoPi * portable::exp(-0.5 * size * size);
  double upper = 0;  // P(z > size)
  if (size < 4) {
    double term = size;
    double sum = size;
    for (int i = 3; term > 1e-18 * sum; i += 2) {
      term = term * size * size / i;
      sum += term;
    }
    upper = 0.5 - density * sum;
  } else {
    double fraction = size;
    for (int i = 100; i >= 1; --i) fraction = size + i / fraction;
    upper = density / fraction;
  }
  return x < 0 ? upper : 1 - upper;
}

std::vector<uint64_t> lognormal_thresholds(const GapConfig& gap) {
  std::vector<uint64_t> thresholds(static_cast<size_t>(gap.max - gap.min));
  for (size_t k = 0; k < thresholds.size(); ++k) {
    const double edge = static_cast<double>(gap.min) + static_cast<double>(k) + 0.5;
    const double cdf = portable_normal_cdf((portable::log(edge) - gap.mu) / gap.sigma);
    const auto rounded = static_cast<uint64_t>(cdf * 0x1p32 + 0.5);
    thresholds[k] = k > 0 && rounded < thresholds[k - 1] ? thresholds[k - 1] : rounded;
  }
  return thresholds;
}

}  // namespace sb
