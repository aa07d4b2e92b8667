#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace sb {
namespace {

constexpr size_t most_grammars = 1000;

double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);  // std::lgamma writes a global
}

// Continued fraction of the incomplete beta function (modified Lentz); converges fast for x < (a+1)/(a+b+2).
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  const auto held_off_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1, d = 1 / held_off_zero(1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m < 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 / held_off_zero(1 + term * d);
      c = held_off_zero(1 + term / c);
      change = c * d;
      value *= change;
    }
    if (std::abs(change - 1) < 1e-15) break;
  }
  return value;
}

// I_x(a, b), with y = 1 - x given apart so that neither end loses digits.
double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front = std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log(y));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, y) / b;
}

// P(T > t) for t >= 0, without cancellation.
double upper_tail(double t, double degrees) {
  const double square = t * t;
  return incomplete_beta(degrees / 2, .5, degrees / (degrees + square), square / (degrees + square)) / 2;
}

}  // namespace

Interval within_shares(const Interval& interval) {
  return {std::clamp(interval.low, 0.0, 1.0), std::clamp(interval.high, 0.0, 1.0)};
}

bool leaves_shares(const Interval& interval) {
  return interval.low < 0 || interval.high > 1;
}

double student_cdf(double t, double degrees) {
  const double tail = upper_tail(std::abs(t), degrees);
  return t < 0 ? tail : 1 - tail;
}

double student_quantile(double probability, double degrees) {
  if (probability == .5) return 0;
  const double tail = std::min(probability, 1 - probability);
  double low = 0, high = 1;
  while (upper_tail(high, degrees) > tail) {
    low = high;
    high *= 2;
  }
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (upper_tail(middle, degrees) > tail ? low : high) = middle;
  }
  return probability < .5 ? -high : high;
}

namespace {

constexpr double many_degrees = 1e6;  // Student's t is normal to six digits

// Caches quantiles, since they are expensive and a page needs few of them many times.
double remembered_quantile(double probability, double degrees) {
  thread_local std::map<std::pair<double, double>, double> known;
  const auto [at, fresh] = known.emplace(std::pair(probability, degrees), 0);
  if (fresh) at->second = student_quantile(probability, degrees);
  return at->second;
}

}  // namespace

double Estimate::standard_error(size_t count) const {
  return std::sqrt(*sd * *sd / static_cast<double>(count) + other_variance);
}

double Estimate::degrees(size_t count) const {
  const auto own = static_cast<double>(count - 1);
  if (other_variance == 0) return own;
  const double ratio = 1 + other_variance * static_cast<double>(count) / (*sd * *sd);
  return *sd == 0 ? many_degrees : std::min(own * ratio * ratio, many_degrees);
}

std::optional<Interval> Estimate::interval(double error) const {
  if (!sd) return std::nullopt;
  const double half = remembered_quantile(1 - error / 2, degrees(n)) * standard_error(n);
  return Interval{mean - half, mean + half};
}

std::optional<double> Estimate::p_against(double value) const {
  if (!sd) return std::nullopt;
  const double error = standard_error(n);
  if (error == 0) return mean == value ? 1 : 0;
  return 2 * upper_tail(std::abs((mean - value) / error), degrees(n));
}

std::optional<double> Estimate::p_outside(double bound) const {
  if (!sd) return std::nullopt;
  const double nearest = bound - std::abs(mean), error = standard_error(n);
  if (error == 0) return nearest > 0 ? 0 : 1;
  return 1 - student_cdf(nearest / error, degrees(n));
}

std::optional<size_t> Estimate::needed(double value, double error) const {
  if (!sd || standard_error(n) == 0) return std::nullopt;
  for (size_t count = 2; count <= most_grammars; ++count) {
    const double half = remembered_quantile(1 - error / 2, degrees(count)) * standard_error(count);
    if (half < std::abs(mean - value)) return count;
  }
  return std::nullopt;
}

Estimate estimate(std::span<const double> values) {
  Estimate out;
  out.n = values.size();
  if (values.empty()) return out;
  const auto n = static_cast<double>(values.size());
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() < 2) return out;
  double squares = 0;
  for (const double v : values) squares += (v - out.mean) * (v - out.mean);
  out.sd = std::sqrt(squares / (n - 1));
  return out;
}

std::vector<HolmStep> holm(std::span<const std::optional<double>> p, double error) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a].value_or(2) < p[b].value_or(2); });
  std::vector<HolmStep> out(p.size());
  size_t left = p.size();
  bool stopped = false;
  for (const size_t at : order) {
    const double share = error / static_cast<double>(left);
    stopped |= !p[at] || *p[at] > share;
    out[at] = {!stopped, share};
    if (!stopped) --left;
  }
  return out;
}

std::optional<double> slope(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  if (x.empty()) return std::nullopt;
  const double mx = std::accumulate(x.begin(), x.end(), 0.0) / n, my = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    xy += (x[i] - mx) * (y[i] - my);
  }
  return xx > 0 ? std::optional(xy / xx) : std::nullopt;
}

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
  double agree = 0, in_a = 0, in_b = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const int x = (a[i] > a[j]) - (a[i] < a[j]), y = (b[i] > b[j]) - (b[i] < b[j]);
      agree += x * y;
      in_a += x * x;
      in_b += y * y;
    }
  return in_a > 0 && in_b > 0 ? std::optional(agree / std::sqrt(in_a * in_b)) : std::nullopt;
}

}  // namespace sb
