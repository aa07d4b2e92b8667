// Decay inside a chunk, as products of factors e^{g} <= 1. Unlike differences of cumulative sums, products do not
// overflow and do not cancel after a strong decay, and a factor of exactly 0 stays exactly 0.
#pragma once
#include <algorithm>
#include <cstdint>

namespace sb::cpu {

// For n steps with factors a[i]: since_start[i] = a_0 ... a_i and until_end[i] = a_{i+1} ... a_{n-1}. Returns the
// product of all factors.
template <class T>
inline T decay_products(int64_t n, const T* a, T* since_start, T* until_end) {
  T product = 1;
  for (int64_t i = 0; i < n; ++i) since_start[i] = product *= a[i];
  T rest = 1;
  for (int64_t i = n - 1; i >= 0; --i) {
    until_end[i] = rest;
    rest *= a[i];
  }
  return product;
}

// Gradients of log-decays from terms of pairs (i, j), j < i. A term decays over the steps t with j < t <= i, so
// x[i, j] = term * d(term) contributes to the gradient of each of these steps. Add rows from last to first. After row
// t, below(t) is the contribution to step t: the sum over all added rows and columns j < t.
template <class T>
class PairSums {
 public:
  PairSums(int64_t columns, T* scratch) : sum_(scratch) { std::fill_n(sum_, columns, T(0)); }
  void add_row(const T* x, int64_t end) {
    for (int64_t j = 0; j < end; ++j) sum_[j] += x[j];
  }
  T below(int64_t t) const {
    T s[4] = {0, 0, 0, 0};
    int64_t j = 0;
    for (; j + 4 <= t; j += 4) {
      for (int l = 0; l < 4; ++l) s[l] += sum_[j + l];
    }
    for (; j < t; ++j) s[0] += sum_[j];
    return (s[0] + s[1]) + (s[2] + s[3]);
  }

 private:
  T* sum_;
};

}  // namespace sb::cpu
