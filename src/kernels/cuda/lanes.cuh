// Sums over the lanes of a warp.
#pragma once
#include <cuda_runtime.h>

namespace sb::cuda {

__device__ inline int lane_id() {
  return threadIdx.x & 31;
}

// Sums x over the lanes whose numbers differ only in the bits from..to / 2 (powers of two)
__device__ inline float sum_lanes(float x, int from, int to) {
  for (int by = from; by < to; by *= 2) x += __shfl_xor_sync(~0u, x, by);
  return x;
}

// Sums each of N values over all lanes; every lane gets the sums
template <int N>
__device__ inline void sum_over_warp(float (&x)[N]) {
#pragma unroll
  for (int by = 1; by < 32; by *= 2)
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] += __shfl_xor_sync(~0u, x[i], by);
}

// Two lanes exchange halves of 2 Half sums: each keeps one half and adds the other lane's values of it.
template <int Half, int By, int N>
__device__ inline void fold_sums(float (&x)[N], int lane) {
  const bool upper = lane & By;
#pragma unroll
  for (int i = 0; i < Half; ++i) {
    const float stays = upper ? x[i + Half] : x[i], goes = upper ? x[i] : x[i + Half];
    x[i] = stays + __shfl_xor_sync(~0u, goes, By);
  }
}

// x of the lane `by` before or behind this one; 0 if there is none
template <class T>
__device__ inline T shift_up(T x, int by, int lane) {
  const T y = __shfl_up_sync(~0u, x, by);
  return lane >= by ? y : T(0);
}
template <class T>
__device__ inline T shift_down(T x, int by, int lane) {
  const T y = __shfl_down_sync(~0u, x, by);
  return lane + by < 32 ? y : T(0);
}

// Sum of x over this lane and those before it, or behind it
template <class T>
__device__ inline T sum_up_to(T x, int lane) {
#pragma unroll
  for (int by = 1; by < 32; by *= 2) x += shift_up(x, by, lane);
  return x;
}
template <class T>
__device__ inline T sum_from(T x, int lane) {
#pragma unroll
  for (int by = 1; by < 32; by *= 2) x += shift_down(x, by, lane);
  return x;
}

// Sum of x over the lanes before this one; `all` gets the sum over all lanes.
template <class T>
__device__ inline T sum_before(T x, int lane, T* all = nullptr) {
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const T y = __shfl_up_sync(~0u, x, by);
    if (lane >= by) x += y;
  }
  if (all) *all = __shfl_sync(~0u, x, 31);
  x = __shfl_up_sync(~0u, x, 1);
  return lane == 0 ? T(0) : x;
}

// Inclusive prefix sum of 64 values, two per lane, in the order of the lanes.
__device__ inline void running_sums(float (&x)[2], int lane) {
  const float before = sum_before(x[0] + x[1], lane);
  x[0] += before;
  x[1] += x[0];
}

}  // namespace sb::cuda
