#include "base/portable.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/portable_arrays.h"

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

// x = m 2^power with m in (sqrt(1/2), sqrt(2)]. Bits instead of branches, so that loops over it are vectorised.
inline double log_of(double x) {
  constexpr uint64_t one = 0x3FF0000000000000ULL, root = 0x3FF6A09E667F3BCDULL;  // 1 and sqrt(2) as bits
  constexpr uint64_t two_to_52 = 0x4330000000000000ULL;                          // its low bits are an integer
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t mantissa = (bits & 0x000FFFFFFFFFFFFFULL) | one;
  const uint64_t above = mantissa > root ? 1 : 0;
  const double m = std::bit_cast<double>(mantissa - (above << 52));
  const double power = std::bit_cast<double>(((bits >> 52) + above) | two_to_52) - (0x1p52 + 1023);
  const double s = (m - 1) / (m + 1);
  double series = 0;
#pragma GCC unroll 12
  for (int n = 23; n >= 1; n -= 2) series = series * (s * s) + 1.0 / n;
  return power * ln2_high + (2 * s * series + power * ln2_low);
}

}  // namespace

double log(double x) {
  return log_of(x);
}

void log(std::span<double> x) {
  for (double& each : x) each = log_of(each);
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

// A quarter turn less leaves x as it is, because 4 u is exact.
void cos_sin_turns(std::span<double> u, double* sin) {
  for (size_t i = 0; i < u.size(); ++i) {
    const double quarters = 4 * u[i];
    const int quadrant = static_cast<int>(quarters);
    const double x = (quarters - quadrant) * half_pi;
    const double c = cos_taylor(x), s = sin_taylor(x);
    const double along = quadrant % 2 == 0 ? c : s, across = quadrant % 2 == 0 ? s : c;
    u[i] = quadrant == 1 || quadrant == 2 ? -along : along;
    sin[i] = quadrant >= 2 ? -across : across;
  }
}

}  // namespace portable

}  // namespace sb
