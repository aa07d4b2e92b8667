#pragma once
#include <cstdint>
#include <vector>

namespace sb {

// Posteriors summed over an element's frames, as the metric sums a model's outputs.
class SummedPosterior {
 public:
  explicit SummedPosterior(int states) : sum_(static_cast<size_t>(states), 0.0) {}
  void add(int32_t id, double probability) {
    if (sum_[id] == 0) touched_.push_back(id);
    sum_[id] += probability;
  }
  int32_t take_best() {  // the lowest id on ties; clears the sums
    int32_t best = 0;
    double top = -1;
    for (const int32_t id : touched_) {
      if (sum_[id] > top || (sum_[id] == top && id < best)) {
        best = id;
        top = sum_[id];
      }
      sum_[id] = 0;
    }
    touched_.clear();
    return best;
  }

 private:
  std::vector<double> sum_;
  std::vector<int32_t> touched_;
};

}  // namespace sb
