// The inverse of a chunk's unit lower triangular matrix I + A in shared memory: its 16 x 16 diagonal blocks by
// substitution in float, merged by products with float accuracy.
#pragma once
#include "kernels/cuda/delta_rows.cuh"

namespace sb::cuda {

constexpr int kFloatLd = kRows + kPad;

// inverse = (I + A)^{-1} for one 16 x 16 diagonal block; lane j < 16 makes column j
__device__ inline void invert_diagonal(const float* A, float* inverse) {
  const int column = lane_id();
  if (column >= 16) return;
  float x[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    float sum = i == column ? 1.f : 0.f;
#pragma unroll
    for (int j = 0; j < i; j += 4) {  // A is zero from the diagonal on
      const float4 a = *reinterpret_cast<const float4*>(A + i * kFloatLd + j);
      sum -= a.x * x[j];
      if (j + 1 < i) sum -= a.y * x[j + 1];
      if (j + 2 < i) sum -= a.z * x[j + 2];
      if (j + 3 < i) sum -= a.w * x[j + 3];
    }
    x[i] = sum;
    inverse[i * kFloatLd + column] = sum;
  }
}

// Merges two inverted halves of a 2 Half x 2 Half diagonal block: lower left = -(lower right) A (upper left). Computes
// 16 rows from `row` on and 8 Tiles columns from `column` on.
template <int Half, int Tiles>
__device__ void merge(const float* A, float* inverse, int row, int column) {
  Sum left[Half / 8], sums[Tiles];
  clear(left);
  clear(sums);
  const float* lower_right = inverse + (Half + row) * kFloatLd + Half;
#pragma unroll
  for (int k = 0; k < Half; k += 8) {
    Left<float> a;
    load(a, lower_right + k, kFloatLd);
    multiply_step<true>(left, a, k, A + Half * kFloatLd, kFloatLd, true);
  }
  multiply_sums<true>(sums, left, inverse + column, kFloatLd, true);
#pragma unroll
  for (int i = 0; i < Tiles; ++i) {
    for (float& x : sums[i]) x = -x;
  }
  store_sums(sums, inverse + (Half + row) * kFloatLd + column, kFloatLd);
}

// inverse = (I + A)^{-1}, both [64][kFloatLd]. `inverse` must be zero on entry. Called by all threads of a block, with
// the index of their warp; the first four warps do the work.
__device__ inline void invert_chunk(const float* A, float* inverse, int warp) {
  const int first = 16 * warp * (kFloatLd + 1), block = 32 * (warp >> 1) * (kFloatLd + 1);
  if (warp < 4) invert_diagonal(A + first, inverse + first);
  __syncthreads();
  if (warp < 4) merge<16, 1>(A + block, inverse + block, 0, 8 * (warp & 1));
  __syncthreads();
  if (warp < 4) merge<32, 2>(A, inverse, 16 * (warp >> 1), 16 * (warp & 1));
  __syncthreads();
}

}  // namespace sb::cuda
