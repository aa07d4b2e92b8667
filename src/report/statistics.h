// Intervals and tests over grammars. The unit is the grammar: runs on the same grammar are averaged first, so the
// number of values is the effective sample size. Student's t on these values (or on paired differences) has its nominal
// coverage from two grammars on; a percentile bootstrap of three does not (tests/findings/statistics_test.cpp).
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

// Clips the interval to [0, 1], the range of an accuracy. leaves_shares: whether it exceeds this range.
Interval within_shares(const Interval& interval);
bool leaves_shares(const Interval& interval);

struct Estimate {
  size_t n = 0;
  double mean = 0;
  std::optional<double> sd;   // n >= 2
  double other_variance = 0;  // known variance of the mean that more values would not reduce

  // Two-sided interval that misses the truth with probability `error`; nullopt for n < 2.
  std::optional<Interval> interval(double error) const;
  // Two-sided p-value of "the truth is `value`"; nullopt for n < 2. Without spread: 1 at the mean and 0 elsewhere.
  std::optional<double> p_against(double value) const;
  // p-value of "the truth is not between -bound and bound": the larger of two one-sided tests; nullopt for n < 2.
  std::optional<double> p_outside(double bound) const;
  // The smallest n, up to 1,000, at which the interval of this error, with the same mean and spread, would exclude
  // `value`; nullopt if there is none or the spread is not known.
  std::optional<size_t> needed(double value, double error) const;

 private:
  // Standard error of the mean of `count` values with this spread, and its degrees of freedom after Welch.
  double standard_error(size_t count) const;
  double degrees(size_t count) const;
};
Estimate estimate(std::span<const double> values);

// Holm's step-down correction over one family of tests. A test that could not be made has no p-value, counts in the
// family, and is never decided. `error` is the error of the test's own interval: at this error, the interval of a
// decided test excludes the tested value, and that of an undecided test contains it.
struct HolmStep {
  bool decided = false;
  double error = 0;
};
std::vector<HolmStep> holm(std::span<const std::optional<double>> p, double family_error);

// Slope of a least-squares line; nullopt if all x are equal.
std::optional<double> slope(std::span<const double> x, std::span<const double> y);
// Kendall's tau-b; nullopt if one side has only ties.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace sb
