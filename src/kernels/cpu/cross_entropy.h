#pragma once
#include <cstdint>

namespace sb::cpu {

// Cross-entropies of rows of logits [rows, classes], 0 where target < 0; with share != 0 the logits become share times
// their gradients.
template <class T>
void cross_entropy_rows(int64_t rows, int64_t classes, T* logits, const int64_t* target, T share, double* losses);
// sums[c] += x[r, c] over all rows, first to last
template <class T>
void add_columns(int64_t rows, int64_t columns, const T* x, T* sums);

}  // namespace sb::cpu
