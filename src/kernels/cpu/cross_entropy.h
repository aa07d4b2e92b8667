#pragma once
#include <cstdint>

namespace sb::cpu {

// Computes the cross-entropy of each row of logits [rows, classes]; 0 for rows with target < 0. If share != 0, replaces
// the logits by share times their gradients.
template <class T>
void cross_entropy_rows(int64_t rows, int64_t classes, T* logits, const int64_t* target, T share, double* losses);
// sums[c] += x[r, c] over all rows, first to last
template <class T>
void add_columns(int64_t rows, int64_t columns, const T* x, T* sums);

}  // namespace sb::cpu
