// Intervals and tests over grammars. The unit is the grammar: runs that share one are averaged before they come here,
// so the number of values is the effective sample size. Student's t on (paired differences of) these has the coverage
// it claims from two grammars on; a percentile bootstrap of three has not (tests/findings/statistics_test.cpp).
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace sb {

double student_cdf(double t, double degrees);                 // P(T <= t), degrees > 0
double student_quantile(double probability, double degrees);  // 0 < probability < 1

// Probability that an interval, or any of a family of tests, misses the truth.
constexpr double family_error = .05;

struct Interval {
  double low = 0, high = 0;
};

// The part of it that a share, as an accuracy is, can have.
Interval within_shares(const Interval& interval);
bool leaves_shares(const Interval& interval);

struct Estimate {
  size_t n = 0;
  double mean = 0;
  std::optional<double> sd;  // n >= 2

  // Two-sided, with this probability of missing the truth; nothing for n < 2.
  std::optional<Interval> interval(double error) const;
  // Two-sided p of "the truth is `value`"; nothing for n < 2. Without spread it is 1 at the mean and 0 elsewhere.
  std::optional<double> p_against(double value) const;
  // p of "the truth is not between -bound and bound": the larger of two one-sided tests; nothing for n < 2.
  std::optional<double> p_outside(double bound) const;
  // The least n, up to 1,000, at which an interval of this error around the same mean with the same spread would not
  // hold `value`; nothing if none does or there is no spread to go by.
  std::optional<size_t> needed(double value, double error) const;
};
Estimate estimate(std::span<const double> values);

// Holm's step-down over one family. A test that could not be made has no p, counts in the family, and is never decided.
// `error` is what the test's own interval may miss with: a decided one excludes the tested value at it, another one
// holds it.
struct HolmStep {
  bool decided = false;
  double error = 0;
};
std::vector<HolmStep> holm(std::span<const std::optional<double>> p, double family_error);

// Least squares; nothing where all x are equal.
std::optional<double> slope(std::span<const double> x, std::span<const double> y);
// Kendall's tau-b; nothing where one side has only ties.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace sb
