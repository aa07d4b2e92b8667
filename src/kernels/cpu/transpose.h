#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/cpu/width.h"

namespace sb::cpu {

namespace tile {

template <class T, int n>
struct VectorOf {
  typedef T type __attribute__((vector_size(n * sizeof(T))));
};

// Interleaves the first (or last) halves of each 16 bytes of a and b.
template <class T, bool last, int... i, class V>
[[gnu::always_inline]] inline V zip(const V& a, const V& b, std::integer_sequence<int, i...>) {
  constexpr int n = sizeof...(i), side = 16 / sizeof(T);
  return __builtin_shufflevector(a, b, (i % 2 * n + i / side * side + (i % side + (last ? side : 0)) / 2)...);
}

// Transposes `side` rows of n elements, `side` being as many as have 16 bytes: b[j, 0..side-1] = a[0..side-1, j]
template <class T, int n>
[[gnu::always_inline]] inline void transpose_rows(const T* a, int64_t lda, T* b, int64_t ldb) {
  using Row = typename VectorOf<T, n>::type;
  constexpr int side = 16 / sizeof(T);
  constexpr auto all = std::make_integer_sequence<int, n>{};
  Row r[side], turned[side];
  for (int i = 0; i < side; ++i) std::memcpy(&r[i], a + i * lda, sizeof(Row));
  if constexpr (side == 4) {
    const Row low02 = zip<T, false>(r[0], r[2], all), high02 = zip<T, true>(r[0], r[2], all);
    const Row low13 = zip<T, false>(r[1], r[3], all), high13 = zip<T, true>(r[1], r[3], all);
    turned[0] = zip<T, false>(low02, low13, all);
    turned[1] = zip<T, true>(low02, low13, all);
    turned[2] = zip<T, false>(high02, high13, all);
    turned[3] = zip<T, true>(high02, high13, all);
  } else {
    turned[0] = zip<T, false>(r[0], r[1], all);
    turned[1] = zip<T, true>(r[0], r[1], all);
  }
  for (int j = 0; j < n; ++j)
    std::memcpy(b + j * ldb, reinterpret_cast<const T*>(&turned[j % side]) + j / side * side, 16);
}

}  // namespace tile

// b[j,i] = a[i,j] for i < rows, j < columns
template <class T>
inline void transpose(int64_t rows, int64_t columns, const T* a, int64_t lda, T* b, int64_t ldb) {
  constexpr int side = 16 / sizeof(T), wide = std::min<int64_t>(kVectorBytes, 32) / sizeof(T);
  const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
  int64_t j = 0;
  for (; j + wide <= columns; j += wide) {
    for (int64_t i = 0; i < whole_rows; i += side)
      tile::transpose_rows<T, wide>(a + i * lda + j, lda, b + j * ldb + i, ldb);
  }
  for (; j < whole_columns; j += side) {
    for (int64_t i = 0; i < whole_rows; i += side)
      tile::transpose_rows<T, side>(a + i * lda + j, lda, b + j * ldb + i, ldb);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = i < whole_rows ? whole_columns : 0; k < columns; ++k) b[k * ldb + i] = a[i * lda + k];
  }
}

}  // namespace sb::cpu
