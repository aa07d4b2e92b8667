#pragma once
#include <cstdint>
#include <vector>

namespace sb::cpu {

namespace tile {

typedef float Quad __attribute__((vector_size(16)));
typedef float QuadUnaligned __attribute__((vector_size(16), aligned(4), may_alias));
typedef double Pair __attribute__((vector_size(16)));
typedef double PairUnaligned __attribute__((vector_size(16), aligned(8), may_alias));

inline void transpose_block(const float* a, int64_t lda, float* b, int64_t ldb) {
  const auto row = [&](int64_t i) -> Quad { return *reinterpret_cast<const QuadUnaligned*>(a + i * lda); };
  const auto put = [&](int64_t i, Quad v) { *reinterpret_cast<QuadUnaligned*>(b + i * ldb) = v; };
  const Quad r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
  const Quad low02 = __builtin_shufflevector(r0, r2, 0, 4, 1, 5), high02 = __builtin_shufflevector(r0, r2, 2, 6, 3, 7);
  const Quad low13 = __builtin_shufflevector(r1, r3, 0, 4, 1, 5), high13 = __builtin_shufflevector(r1, r3, 2, 6, 3, 7);
  put(0, __builtin_shufflevector(low02, low13, 0, 4, 1, 5));
  put(1, __builtin_shufflevector(low02, low13, 2, 6, 3, 7));
  put(2, __builtin_shufflevector(high02, high13, 0, 4, 1, 5));
  put(3, __builtin_shufflevector(high02, high13, 2, 6, 3, 7));
}

inline void transpose_block(const double* a, int64_t lda, double* b, int64_t ldb) {
  const Pair r0 = *reinterpret_cast<const PairUnaligned*>(a), r1 = *reinterpret_cast<const PairUnaligned*>(a + lda);
  *reinterpret_cast<PairUnaligned*>(b) = __builtin_shufflevector(r0, r1, 0, 2);
  *reinterpret_cast<PairUnaligned*>(b + ldb) = __builtin_shufflevector(r0, r1, 1, 3);
}

}  // namespace tile

// b[j,i] = a[i,j] for i < rows, j < columns
template <class T>
inline void transpose(int64_t rows, int64_t columns, const T* a, int64_t lda, T* b, int64_t ldb) {
  constexpr int64_t side = 16 / static_cast<int64_t>(sizeof(T));
  const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
  for (int64_t j = 0; j < whole_columns; j += side) {
    for (int64_t i = 0; i < whole_rows; i += side) {
      tile::transpose_block(a + i * lda + j, lda, b + j * ldb + i, ldb);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) b[j * ldb + i] = a[i * lda + j];
  }
}

}  // namespace sb::cpu
