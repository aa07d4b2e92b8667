#include "base/portable.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace sb {
namespace portable {
namespace {

constexpr double ln2_high = 0x1.62e42fee00000p-1;  // 33 bits: an integer below 2^20 times it is exact
constexpr double ln2_low = 0x1.a39ef35793c76p-33;
constexpr double half_pi = 0x1.921fb54442d18p+0;

double scale_by_power_of_two(double x, int power) {
  return x * std::bit_cast<double>(static_cast<uint64_t>(1023 + power) << 52);
}

double cos_taylor(double x) {
  double sum = 0;
  for (int n = 22; n >= 2; n -= 2) sum = (1 - sum) * (x * x) / (n * (n - 1));
  return 1 - sum;
}
double sin_taylor(double x) {
  double sum = 0;
  for (int n = 23; n >= 3; n -= 2) sum = (1 - sum) * (x * x) / (n * (n - 1));
  return x * (1 - sum);
}

}  // namespace

double log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  int power = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  if (m > 1.4142135623730951) {
    m /= 2;
    ++power;
  }
  const double s = (m - 1) / (m + 1);
  double series = 0;
  for (int n = 23; n >= 1; n -= 2) series = series * (s * s) + 1.0 / n;
  return power * ln2_high + (2 * s * series + power * ln2_low);
}

double exp(double x) {
  const int power = static_cast<int>(x / (ln2_high + ln2_low) + (x < 0 ? -0.5 : 0.5));
  const double r = (x - power * ln2_high) - power * ln2_low;
  double sum = 1;
  for (int n = 18; n >= 1; --n) sum = 1 + sum * r / n;
  return scale_by_power_of_two(sum, power);
}

double cos_turns(double u) {
  const double quarters = 4 * u;
  const int quadrant = static_cast<int>(quarters);
  const double x = (quarters - quadrant) * half_pi;
  switch (quadrant % 4) {
    case 0:
      return cos_taylor(x);
    case 1:
      return -sin_taylor(x);
    case 2:
      return -cos_taylor(x);
    default:
      return sin_taylor(x);
  }
}

}  // namespace portable

}  // namespace sb
