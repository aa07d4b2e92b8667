#include "models/init.h"

#include <bit>
#include <cmath>

#include "random/philox.h"

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

namespace {

constexpr double pi = 0x1.921fb54442d18p+1;

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// Never 0 or 1: logarithms of it are finite.
double open_unit(uint32_t word) {
  return (static_cast<double>(word) + 0.5) * 0x1p-32;
}

double from_unit(const Init& init, double u) {
  switch (init.rule) {
    case Init::Rule::log_uniform:
      return portable::log(init.a + (init.b - init.a) * u);
    case Init::Rule::inverse_softplus: {
      const double low = portable::log(0.001);
      double tau = portable::exp(u * (portable::log(0.1) - low) + low);
      tau = tau < 1e-4 ? 1e-4 : tau;
      return tau + portable::log(1 - portable::exp(-tau));
    }
    default:
      return init.a + (init.b - init.a) * u;
  }
}

}  // namespace

Init Init::fan_in(int64_t inputs) {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return uniform(-bound, bound);
}

void draw_initial(const Init& init, uint64_t seed, std::string_view name, int64_t last_axis, int64_t begin, int64_t end,
                  double* out) {
  const PhiloxStream stream(seed, 0, fnv1a(name), Purpose::initialisation);
  PhiloxBlock block{};
  int64_t drawn = -1;
  const auto word = [&](int64_t i) {
    if (i / 4 != drawn) block = stream.block(static_cast<uint32_t>(drawn = i / 4));
    return block[static_cast<size_t>(i % 4)];
  };
  for (int64_t i = begin; i < end; ++i) {
    double& value = out[i - begin];
    switch (init.rule) {
      case Init::Rule::constant:
        value = init.a;
        break;
      case Init::Rule::log_position:
        value = portable::log(static_cast<double>(1 + i % last_axis));
        break;
      case Init::Rule::pi_position:
        value = pi * static_cast<double>(i % last_axis);
        break;
      case Init::Rule::normal: {
        const double radius = std::sqrt(-2 * portable::log(open_unit(word(2 * i))));
        value = init.a * radius * portable::cos_turns(unit_double(word(2 * i + 1)));
        break;
      }
      default:
        value = from_unit(init, open_unit(word(i)));
    }
  }
}

}  // namespace sb
