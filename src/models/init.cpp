#include "models/init.h"

#include <cmath>

#include "random/philox.h"

namespace sb {
namespace {

constexpr double pi = 0x1.921fb54442d18p+1;

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// In (0, 1), so that logarithms are finite.
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

double power(double base, double exponent) {
  return base > 0 ? portable::exp(exponent * portable::log(base)) : 0;
}

double on_curve(const Init::Curve& curve, int64_t i, int64_t size) {
  const double u = size > 1 ? static_cast<double>(i) / static_cast<double>(size - 1) : 0;
  const double half = static_cast<double>(curve.period - 1) / 2;
  const double z = half > 0 ? (static_cast<double>(i % curve.period) - half) / half : 0;
  return curve.offset + curve.slope * (u - 0.5) + curve.scale * power(u, curve.power) + curve.zigzag * z * std::abs(z);
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
      case Init::Rule::power_complement:
        value = 1 - power(static_cast<double>(i % last_axis) / static_cast<double>(last_axis), init.a);
        break;
      case Init::Rule::curve:
        value = on_curve(init.shape, i % last_axis, last_axis);
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
