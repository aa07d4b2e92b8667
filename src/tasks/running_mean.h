#pragma once
#include <cmath>

namespace sb {

// Weighted mean and its standard error, computed in one pass in a fixed order.
class RunningMean {
 public:
  void add(double x, double weight = 1) {
    if (weight == 0) return;
    ++count_;
    weights_ += weight;
    const double step = x - mean_;
    mean_ += weight * step / weights_;
    squares_ += weight * step * (x - mean_);
  }
  double mean() const { return mean_; }
  double error() const { return count_ > 1 ? std::sqrt(squares_ / (weights_ - weights_ / count_) / count_) : 0; }

 private:
  double count_ = 0, weights_ = 0, mean_ = 0, squares_ = 0;
};

}  // namespace sb
