// Products of matrices that fit the caches (a chunk of rows times a head), without packing: operands are read where they lie.
// Row-major, `ld` elements from row to row. C is written (add = false) or added to. The order of summation depends only on
// the sizes. M any; N and, for gemm_nt, the depth: multiples of kLanes<T> (pad with zeros, see kPad).
//   gemm_nn  C[M,N] = A[M,D] B[D,N]      gemm_tn  C[M,N] = A[D,M]^T B[D,N]      gemm_nt  C[M,N] = A[M,D] B[N,D]^T
#pragma once
#include <algorithm>

#include "kernels/cpu/simd.h"

namespace sb::cpu {

// lower: for gemm_nn and gemm_tn, the stored A is lower triangular (zeros above the diagonal are there, but skipped);
// for gemm_nt, only the blocks of C that touch the lower triangle are computed.
enum class Shape { full, lower };

namespace tile {

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kRows = 8;
inline constexpr int kVectors = 2;
#else
inline constexpr int kRows = 4;
inline constexpr int kVectors = 3;
#endif

template <class T, int R, int N>
struct Accumulator {
  typename Simd<T>::Vec v[R][N];
  void start(const T* c, int64_t ldc, bool add) {
    for (int r = 0; r < R; ++r) {
      for (int n = 0; n < N; ++n) v[r][n] = add ? load(c + r * ldc + n * kLanes<T>) : typename Simd<T>::Vec{};
    }
  }
  void finish(T* c, int64_t ldc) const {
    for (int r = 0; r < R; ++r) {
      for (int n = 0; n < N; ++n) store(c + r * ldc + n * kLanes<T>, v[r][n]);
    }
  }
};

// acc += A[R rows, depth] B[depth, N vectors]
template <class T, int R, int N>
inline void multiply_nn(Accumulator<T, R, N>& acc, int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb) {
  constexpr int L = kLanes<T>;
  int64_t k = 0;
  if constexpr (kLaneMultiply) {
    for (; k + L <= depth; k += L) {
      typename Simd<T>::Vec row[R];
      for (int r = 0; r < R; ++r) row[r] = load(a + r * lda + k);
      for (int l = 0; l < L; ++l) {
        for (int n = 0; n < N; ++n) {
          const auto bv = load(b + (k + l) * ldb + n * L);
          for (int r = 0; r < R; ++r) acc.v[r][n] += bv * row[r][l];
        }
      }
    }
  }
  for (; k < depth; ++k) {
    for (int n = 0; n < N; ++n) {
      const auto bv = load(b + k * ldb + n * L);
      for (int r = 0; r < R; ++r) acc.v[r][n] += bv * a[r * lda + k];
    }
  }
}

// acc += A[depth, R columns]^T B[depth, N vectors]
template <class T, int R, int N>
inline void multiply_tn(Accumulator<T, R, N>& acc, int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb) {
  constexpr int L = kLanes<T>;
  for (int64_t k = 0; k < depth; ++k) {
    if constexpr (kLaneMultiply && R % L == 0) {
      typename Simd<T>::Vec column[R / L];
      for (int i = 0; i < R / L; ++i) column[i] = load(a + k * lda + i * L);
      for (int n = 0; n < N; ++n) {
        const auto bv = load(b + k * ldb + n * L);
        for (int r = 0; r < R; ++r) acc.v[r][n] += bv * column[r / L][r % L];
      }
    } else {
      for (int n = 0; n < N; ++n) {
        const auto bv = load(b + k * ldb + n * L);
        for (int r = 0; r < R; ++r) acc.v[r][n] += bv * a[k * lda + r];
      }
    }
  }
}

enum class Side { nn, tn };

template <class T, Side S, int R, int N>
inline void block(int64_t begin, int64_t end, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
                  bool add) {
  Accumulator<T, R, N> acc;
  acc.start(c, ldc, add);
  if constexpr (S == Side::nn) {
    multiply_nn(acc, end - begin, a + begin, lda, b + begin * ldb, ldb);
  } else {
    multiply_tn(acc, end - begin, a + begin * lda, lda, b + begin * ldb, ldb);
  }
  acc.finish(c, ldc);
}

// R rows of C, all columns
template <class T, Side S, int R, int N = kVectors>
inline void rows(int64_t width, int64_t begin, int64_t end, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                 int64_t ldc, bool add) {
  constexpr int64_t step = N * kLanes<T>;
  int64_t j = 0;
  for (; j + step <= width; j += step) block<T, S, R, N>(begin, end, a, lda, b + j, ldb, c + j, ldc, add);
  if constexpr (N > 1) {
    if (j < width) rows<T, S, R, N - 1>(width - j, begin, end, a, lda, b + j, ldb, c + j, ldc, add);
  }
}

// R x Q entries of C, each a dot product along the depth; the lanes are joined at the end.
template <class T, int R, int Q>
inline void dots(int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc, bool add) {
  constexpr int L = kLanes<T>;
  typename Simd<T>::Vec acc[R][Q]{};
  for (int64_t k = 0; k < depth; k += L) {
    typename Simd<T>::Vec bv[Q];
    for (int q = 0; q < Q; ++q) bv[q] = load(b + q * ldb + k);
    for (int r = 0; r < R; ++r) {
      const auto av = load(a + r * lda + k);
      for (int q = 0; q < Q; ++q) acc[r][q] += av * bv[q];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int q = 0; q < Q; ++q) {
      const T s = sum_lanes<T>(acc[r][q]);
      c[r * ldc + q] = add ? c[r * ldc + q] + s : s;
    }
  }
}

}  // namespace tile

template <class T>
void gemm_nn(int64_t M, int64_t N, int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
             bool add = false, Shape shape = Shape::full) {
  int64_t i = 0;
  const auto end = [&](int64_t rows) { return shape == Shape::lower ? std::min(depth, i + rows) : depth; };
  for (; i + tile::kRows <= M; i += tile::kRows) {
    tile::rows<T, tile::Side::nn, tile::kRows>(N, 0, end(tile::kRows), a + i * lda, lda, b, ldb, c + i * ldc, ldc, add);
  }
  for (; i < M; ++i) tile::rows<T, tile::Side::nn, 1>(N, 0, end(1), a + i * lda, lda, b, ldb, c + i * ldc, ldc, add);
}

template <class T>
void gemm_tn(int64_t M, int64_t N, int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
             bool add = false, Shape shape = Shape::full) {
  int64_t i = 0;
  const auto begin = [&] { return shape == Shape::lower ? std::min(depth, i) : 0; };
  for (; i + tile::kRows <= M; i += tile::kRows) {
    tile::rows<T, tile::Side::tn, tile::kRows>(N, begin(), depth, a + i, lda, b, ldb, c + i * ldc, ldc, add);
  }
  for (; i < M; ++i) tile::rows<T, tile::Side::tn, 1>(N, begin(), depth, a + i, lda, b, ldb, c + i * ldc, ldc, add);
}

template <class T>
void gemm_nt(int64_t M, int64_t N, int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
             bool add = false, Shape shape = Shape::full) {
  int64_t i = 0;
  const auto row_block = [&]<int R>(std::integral_constant<int, R>) {
    const int64_t width = shape == Shape::lower ? std::min(N, i + R) : N;
    int64_t j = 0;
    for (; j + 4 <= width; j += 4) {
      tile::dots<T, R, 4>(depth, a + i * lda, lda, b + j * ldb, ldb, c + i * ldc + j, ldc, add);
    }
    for (; j < width; ++j) {
      tile::dots<T, R, 1>(depth, a + i * lda, lda, b + j * ldb, ldb, c + i * ldc + j, ldc, add);
    }
  };
  for (; i + 4 <= M; i += 4) row_block(std::integral_constant<int, 4>{});
  for (; i < M; ++i) row_block(std::integral_constant<int, 1>{});
}

}  // namespace sb::cpu
