#pragma once
#include <cstdint>
#include <xsimd/xsimd.hpp>

namespace sb::cpu {

namespace tile {

// Transposes one square block with rows of 16 bytes; this size works on every machine.
inline void transpose_block(const float* a, int64_t lda, float* b, int64_t ldb) {
  using Quad = xsimd::make_sized_batch_t<float, 4>;
  const auto row = [&](int64_t i) { return Quad::load_unaligned(a + i * lda); };
  const Quad r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
  const Quad low02 = xsimd::zip_lo(r0, r2), high02 = xsimd::zip_hi(r0, r2);
  const Quad low13 = xsimd::zip_lo(r1, r3), high13 = xsimd::zip_hi(r1, r3);
  xsimd::zip_lo(low02, low13).store_unaligned(b);
  xsimd::zip_hi(low02, low13).store_unaligned(b + ldb);
  xsimd::zip_lo(high02, high13).store_unaligned(b + 2 * ldb);
  xsimd::zip_hi(high02, high13).store_unaligned(b + 3 * ldb);
}

inline void transpose_block(const double* a, int64_t lda, double* b, int64_t ldb) {
  using Pair = xsimd::make_sized_batch_t<double, 2>;
  const Pair r0 = Pair::load_unaligned(a), r1 = Pair::load_unaligned(a + lda);
  xsimd::zip_lo(r0, r1).store_unaligned(b);
  xsimd::zip_hi(r0, r1).store_unaligned(b + ldb);
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
