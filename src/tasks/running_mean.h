#pragma once
#include <cmath>

namespace sb {

// Mean and standard error, computed in one pass in a fixed order.
class RunningMean {
 public:
  void add(double x) {
    ++count_;
    const double step = x - mean_;
    mean_ += step / count_;
    squares_ += step * (x - mean_);
  }
  double mean() const { return mean_; }
  double error() const { return count_ > 1 ? std::sqrt(squares_ / (count_ - 1) / count_) : 0; }

 private:
  double count_ = 0, mean_ = 0, squares_ = 0;
};

}  // namespace sb
