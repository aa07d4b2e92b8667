#pragma once
#include <cmath>

namespace sb {

// Weighted mean and its standard error, computed in one pass in a fixed order. If weights differ, the mean is a ratio
// of two sums that both vary between samples, and its error is that of the linearised ratio:
//   sqrt(n / (n - 1) * sum of w^2 (x - mean)^2) / sum of w
class RunningMean {
 public:
  void add(double x, double weight = 1) {
    if (weight == 0) return;
    if (count_ == 0) first_weight_ = weight;
    even_ &= weight == first_weight_;
    ++count_;
    weights_ += weight;
    const double step = x - mean_;
    mean_ += weight * step / weights_;
    squares_ += weight * step * (x - mean_);
    const double heavy = weight * weight, heavy_step = x - heavy_mean_;
    heavy_weights_ += heavy;
    heavy_mean_ += heavy * heavy_step / heavy_weights_;
    heavy_squares_ += heavy * heavy_step * (x - heavy_mean_);
  }
  double mean() const { return mean_; }
  double count() const { return count_; }  // of values with a weight above 0
  bool even() const { return even_; }      // all these weights are equal
  double error() const {
    if (count_ < 2) return 0;
    if (even_) return std::sqrt(squares_ / (weights_ - weights_ / count_) / count_);
    const double off = heavy_mean_ - mean_;
    return std::sqrt(count_ / (count_ - 1) * (heavy_squares_ + heavy_weights_ * off * off)) / weights_;
  }

 private:
  double count_ = 0, weights_ = 0, mean_ = 0, squares_ = 0;
  double heavy_weights_ = 0, heavy_mean_ = 0, heavy_squares_ = 0;  // the same with squared weights
  double first_weight_ = 0;
  bool even_ = true;
};

}  // namespace sb
