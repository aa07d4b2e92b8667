// Products of matrices that fit into the caches (a chunk of rows times a head). Matrices are row-major; lda, ldb and
// ldc are the row strides. C is overwritten (add = false) or added to. The order of summation depends only on the
// sizes. N must be a multiple of lanes<T> (pad with zeros, see kPad); M and the depth D are arbitrary.
//   gemm_nn  C[M,N] = A[M,D] B[D,N]      gemm_tn  C[M,N] = A[D,M]^T B[D,N]      gemm_nt  C[M,N] = A[M,D] B[N,D]^T
// The inner loop reads rows of B, and columns of A where it multiplies by lanes (NEON): operands that lie the other way
// are transposed first.
#pragma once
#include <algorithm>
#include <vector>

#include "kernels/cpu/transpose.h"
#include "kernels/cpu/vectors.h"

namespace sb::cpu {

using simd::lanes;
using simd::Vec;

// Nonzero part of a matrix. step = 0: all of it; otherwise row i is zero in columns j >= (i + 1) step. In gemm_nn and
// gemm_tn this describes the stored A, whose zeros are skipped; in gemm_nt it describes C, whose zero blocks are not
// computed.
struct Shape {
  int64_t step = 0;
};
inline constexpr Shape full{0};
inline constexpr Shape lower{1};

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
  Vec<T> v[R][N];
  // body(row, vector): unrolled, since g++ turns plain loops over rows around the loop over the depth, which leaves the
  // sums in memory: on x86 half the speed.
  template <class Body>
  [[gnu::always_inline]] static void each(const Body& body) {
    simd::unrolled<R>([&](auto r) __attribute__((always_inline)) {
      simd::unrolled<N>([&](auto n) __attribute__((always_inline)) { body(r, n); });
    });
  }
  [[gnu::always_inline]] void start(const T* c, int64_t ldc, bool add) {
    each([&](auto r, auto n)
             __attribute__((always_inline)) { v[r][n] = add ? simd::load(c + r * ldc + n * lanes<T>) : Vec<T>(T(0)); });
  }
  [[gnu::always_inline]] void finish(T* c, int64_t ldc) const {
    each([&](auto r, auto n) __attribute__((always_inline)) { simd::store(c + r * ldc + n * lanes<T>, v[r][n]); });
  }
};

// acc += A B[depth, N vectors]; element (r, k) of A is a[k * lda + r * across].
template <class T, int R, int N>
[[gnu::always_inline]] inline void multiply(Accumulator<T, R, N>& acc, int64_t depth, const T* a, int64_t lda,
                                            const T* b, int64_t ldb, int64_t across = 1) {
  constexpr int L = static_cast<int>(lanes<T>);
  for (int64_t k = 0; k < depth; ++k, a += lda, b += ldb) {
    Vec<T> bv[N];
    for (int n = 0; n < N; ++n) bv[n] = simd::load(b + n * L);
    if constexpr (simd::kLaneMultiply && R % L == 0) {  // across = 1
      Vec<T> column[R / L];
      for (int i = 0; i < R / L; ++i) column[i] = simd::load(a + i * L);
      simd::unrolled<L>([&](auto l) {
        for (int i = 0; i < R / L; ++i) {
          for (int n = 0; n < N; ++n)
            acc.v[i * L + l][n] = simd::multiply_lane<l>(acc.v[i * L + l][n], bv[n], column[i]);
        }
      });
    } else {
      acc.each([&](auto r, auto n) __attribute__((always_inline)) {
        acc.v[r][n] = xsimd::fma(bv[n], Vec<T>(a[r * across]), acc.v[r][n]);
      });
    }
  }
}

// body(j, vectors) for columns j of up to N vectors at a time
template <class T, int N = kVectors, class Body>
[[gnu::always_inline]] inline void for_columns(int64_t width, const Body& body, int64_t j = 0) {
  for (; j + N * lanes<T> <= width; j += N * lanes<T>) body(j, std::integral_constant<int, N>{});
  if constexpr (N > 1) for_columns<T, N - 1>(width, body, j);
}

// R rows of C: A B[depth, width]
template <class T, int R>
[[gnu::always_inline]] inline void rows(int64_t width, int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb,
                                        T* c, int64_t ldc, bool add, int64_t across = 1) {
  for_columns<T>(
      width, [&](int64_t j, auto vectors) __attribute__((always_inline)) {
        Accumulator<T, R, vectors> acc;
        acc.start(c + j, ldc, add);
        multiply(acc, depth, a, lda, b + j, ldb, across);
        acc.finish(c + j, ldc);
      });
}

// Depth of a pass over turned rows of A, so that they fit into the L1 cache.
inline constexpr int64_t kPanelDepth = 512;

// R rows of C: A[R, depth] B[depth, width]. Only multiplication by lanes needs the rows turned.
template <class T, int R>
inline void turned_rows(int64_t width, int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                        int64_t ldc, bool add) {
  if constexpr (!simd::kLaneMultiply) return rows<T, R>(width, depth, a, 1, b, ldb, c, ldc, add, lda);
  alignas(64) T panel[R * kPanelDepth];
  for (int64_t k = 0; k < depth || k == 0; k += kPanelDepth) {
    const int64_t part = std::min(kPanelDepth, depth - k);
    transpose(R, part, a + k, lda, panel, R);
    rows<T, R>(width, part, panel, R, b + k * ldb, ldb, c, ldc, add || k > 0);
  }
}

}  // namespace tile

// X <- (I - A)^{-1} X for X[M,N] and strictly lower triangular A[M,M]; M and N multiples of kPad.
template <class T>
void solve_lower(int64_t M, int64_t N, const T* a, int64_t lda, T* x, int64_t ldx) {
  constexpr int R = tile::kRows;
  alignas(64) T panel[R * tile::kPanelDepth];
  for (int64_t i = 0; i < M; i += R) {
    transpose(R, i + R, a + i * lda, lda, panel, R);
    const T* const diagonal = panel + i * R;
    tile::for_columns<T>(
        N, [&](int64_t j, auto vectors) __attribute__((always_inline)) {
          tile::Accumulator<T, R, vectors> acc;
          acc.start(x + i * ldx + j, ldx, true);
          tile::multiply(acc, i, panel, R, x + j, ldx);
          simd::unrolled<R>([&](auto r) __attribute__((always_inline)) {
            acc.each([&](auto below, auto n) __attribute__((always_inline)) {
              if constexpr (below > r)
                acc.v[below][n] = xsimd::fma(acc.v[r][n], Vec<T>(diagonal[r * R + below]), acc.v[below][n]);
            });
          });
          acc.finish(x + i * ldx + j, ldx);
        });
  }
}

// X <- (I - A)^{-T} X, A as above.
template <class T>
void solve_lower_transposed(int64_t M, int64_t N, const T* a, int64_t lda, T* x, int64_t ldx) {
  constexpr int R = tile::kRows;
  for (int64_t i = M - R; i >= 0; i -= R) {
    const T* const diagonal = a + i * lda + i;
    tile::for_columns<T>(
        N, [&](int64_t j, auto vectors) __attribute__((always_inline)) {
          tile::Accumulator<T, R, vectors> acc;
          acc.start(x + i * ldx + j, ldx, true);
          tile::multiply(acc, M - i - R, a + (i + R) * lda + i, lda, x + (i + R) * ldx + j, ldx);
          simd::unrolled<R>([&](auto before) __attribute__((always_inline)) {
            constexpr int r = R - 1 - before;
            acc.each([&](auto above, auto n) __attribute__((always_inline)) {
              if constexpr (above < r)
                acc.v[above][n] = xsimd::fma(acc.v[r][n], Vec<T>(diagonal[r * lda + above]), acc.v[above][n]);
            });
          });
          acc.finish(x + i * ldx + j, ldx);
        });
  }
}

template <class T>
void gemm_nn(int64_t M, int64_t N, int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
             bool add = false, Shape shape = full) {
  const int64_t whole = M / tile::kRows * tile::kRows;
  const auto end = [&](int64_t row) { return shape.step ? std::min(depth, row * shape.step) : depth; };
  for (int64_t i = 0; i < whole; i += tile::kRows) {
    tile::turned_rows<T, tile::kRows>(N, end(i + tile::kRows), a + i * lda, lda, b, ldb, c + i * ldc, ldc, add);
  }
  for (int64_t i = whole; i < M; ++i) {
    tile::turned_rows<T, 1>(N, end(i + 1), a + i * lda, lda, b, ldb, c + i * ldc, ldc, add);
  }
}

template <class T>
void gemm_tn(int64_t M, int64_t N, int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
             bool add = false, Shape shape = full) {
  const int64_t whole = M / tile::kRows * tile::kRows;
  const auto begin = [&](int64_t row) { return shape.step ? std::min(depth, row / shape.step) : 0; };
  for (int64_t i = 0; i < whole; i += tile::kRows) {
    const int64_t from = begin(i);
    tile::rows<T, tile::kRows>(N, depth - from, a + from * lda + i, lda, b + from * ldb, ldb, c + i * ldc, ldc, add);
  }
  for (int64_t i = whole; i < M; ++i) {
    const int64_t from = begin(i);
    tile::rows<T, 1>(N, depth - from, a + from * lda + i, lda, b + from * ldb, ldb, c + i * ldc, ldc, add);
  }
}

template <class T>
void gemm_nt(int64_t M, int64_t N, int64_t depth, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
             bool add = false, Shape shape = full) {
  thread_local std::vector<T> turned;
  if (turned.size() < static_cast<size_t>(depth * N)) turned.resize(static_cast<size_t>(depth * N));
  T* const bt = turned.data();
  transpose(N, depth, b, ldb, bt, N);
  const int64_t whole = M / tile::kRows * tile::kRows;
  const auto width = [&](int64_t row) { return shape.step ? std::min(N, padded<T>(row * shape.step)) : N; };
  for (int64_t i = 0; i < whole; i += tile::kRows) {
    tile::turned_rows<T, tile::kRows>(width(i + tile::kRows), depth, a + i * lda, lda, bt, N, c + i * ldc, ldc, add);
  }
  for (int64_t i = whole; i < M; ++i) {
    tile::turned_rows<T, 1>(width(i + 1), depth, a + i * lda, lda, bt, N, c + i * ldc, ldc, add);
  }
}

}  // namespace sb::cpu
