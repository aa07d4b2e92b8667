// Initial values of parameters: pure functions of (seed, parameter name, index), with the same bits on every machine.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/portable.h"

namespace sb {

struct Init {
  enum class Rule {
    constant,          // a
    uniform,           // U(a, b)
    normal,            // N(0, a^2)
    log_uniform,       // ln U(a, b)
    inverse_softplus,  // tau + ln(1 - e^-tau), tau = max(1e-4, e^U(ln .001, ln .1))
    log_position,      // ln(1 + position in the last axis)
    pi_position,       // pi * position in the last axis
    power_complement,  // 1 - (position / size)^a in the last axis
    curve,             // Curve
  };
  // offset + slope (u - 1/2) + scale u^power + zigzag z|z|, where u runs from 0 to 1 along the last axis and z from -1
  // to 1 along every `period` elements of it
  struct Curve {
    double offset = 0, slope = 0, zigzag = 0;
    int64_t period = 1;
    double scale = 0, power = 1;
  };
  Rule rule = Rule::constant;
  double a = 0, b = 0;
  Curve shape = {};

  static Init constant(double value) { return {Rule::constant, value, 0}; }
  static Init uniform(double low, double high) { return {Rule::uniform, low, high}; }
  static Init fan_in(int64_t inputs);  // U(-1/sqrt(inputs), 1/sqrt(inputs))
  static Init normal(double deviation) { return {Rule::normal, deviation, 0}; }
  static Init log_uniform(double low, double high) { return {Rule::log_uniform, low, high}; }
  static Init step_bias() { return {Rule::inverse_softplus, 0, 0}; }
  static Init log_position() { return {Rule::log_position, 0, 0}; }
  static Init pi_position() { return {Rule::pi_position, 0, 0}; }
  static Init power_complement(double power) { return {Rule::power_complement, power, 0}; }
  static Init curve(const Curve& shape) { return {Rule::curve, 0, 0, shape}; }
};

// Writes the initial values of elements [begin, end) of the parameter `name` to out[0], out[1], …. `last_axis`: size of
// the parameter's last axis.
void draw_initial(const Init& init, uint64_t seed, std::string_view name, int64_t last_axis, int64_t begin, int64_t end,
                  double* out);

}  // namespace sb
