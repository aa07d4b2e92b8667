// Groups of 16 x 16 elements in the registers of a warp, in the order of Element8. A group is the left operand of a
// product, and its transpose the right one, without exchange between lanes: both have a lane's elements in one order.
#pragma once
#include <type_traits>

#include "kernels/cuda/decayed_attention_levels.cuh"

namespace sb::cuda::attention {

// The factor of a log-decay
template <class E>
__device__ inline float decay_of(float log) {
  if constexpr (sizeof(E) == 2)
    return exp2_fast(kLog2EFloat * log);
  else
    return exp_near_one(log);
}

// Two adjacent elements
template <class E>
using Pair = std::conditional_t<sizeof(E) == 2, uint32_t, float2>;

template <class E>
__device__ inline Pair<E> make_pair(float x, float y) {
  if constexpr (sizeof(E) == 2)
    return pack(x, y);
  else
    return make_float2(x, y);
}
__device__ inline float2 floats(uint32_t x) {
  return unpack(x);
}
__device__ inline float2 floats(float2 x) {
  return x;
}
__device__ inline uint32_t times(uint32_t x, uint32_t y) {
  __nv_bfloat162 a, b;
  memcpy(&a, &x, 4);
  memcpy(&b, &y, 4);
  a = __hmul2(a, b);
  memcpy(&x, &a, 4);
  return x;
}
__device__ inline float2 times(float2 x, float2 y) {
  return make_float2(x.x * y.x, x.y * y.y);
}

// Pair i: elements 2 i and 2 i + 1. Its row is at.row + i % 2 * 8, its first column i / 2 * 8 + at.pair * 2.
template <class E>
struct Group {
  Pair<E> r[4];
  __device__ void load(const E* tile, int ld, const Place& at) {
    if constexpr (sizeof(E) == 2) {
      load_matrices(r, tile + down_first(at.lane, ld));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) r[i] = load_pair(tile + (at.row + i % 2 * 8) * ld + i / 2 * 8 + at.pair * 2);
    }
  }
  // The transpose of the tile's group
  __device__ void load_transposed(const E* tile, int ld, const Place& at) {
    if constexpr (sizeof(E) == 2) {
      load_matrices_transposed(r, tile + along_first(at.lane, ld));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const E* x = tile + (i / 2 * 8 + at.pair * 2) * ld + at.row + i % 2 * 8;
        r[i] = make_float2(x[0], x[ld]);
      }
    }
  }
  __device__ void store(E* tile, int ld, const Place& at) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      *reinterpret_cast<Pair<E>*>(tile + (at.row + i % 2 * 8) * ld + i / 2 * 8 + at.pair * 2) = r[i];
  }
  __device__ void store_transposed(E* tile, int ld, const Place& at) const {
    if constexpr (sizeof(E) == 2) {
      store_matrices_transposed(r, tile + along_first(at.lane, ld));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        E* x = tile + (i / 2 * 8 + at.pair * 2) * ld + at.row + i % 2 * 8;
        x[0] = r[i].x, x[ld] = r[i].y;
      }
    }
  }
  // Rounds eight elements
  __device__ static Group of(const float (&x)[8]) {
    Group out;
#pragma unroll
    for (int i = 0; i < 4; ++i) out.r[i] = make_pair<E>(x[2 * i], x[2 * i + 1]);
    return out;
  }
  __device__ Group operator*(const Group& y) const {
    Group out;
#pragma unroll
    for (int i = 0; i < 4; ++i) out.r[i] = times(r[i], y.r[i]);
    return out;
  }
};

// sum (16 x 8) += a b^T, the columns 8 n to 8 n + 7 of the product
template <Product P>
__device__ __forceinline__ void multiply_tile(Sum& sum, const Group<Operand<P>>& a, const Group<Operand<P>>& b, int n) {
  if constexpr (P == Product::bf16) {
    const uint32_t right[2] = {b.r[n], b.r[n + 2]};
    mma_bf16(sum, a.r, right);
  } else {
#pragma unroll
    for (int k = 0; k < 4; k += 2)
      multiply(sum, Left<float>{{a.r[k].x, a.r[k + 1].x, a.r[k].y, a.r[k + 1].y}},
               Right<float>{{b.r[k + n].x, b.r[k + n].y}}, P == Product::fp32);
  }
}
// sums (16 x 16) += a b^T
template <Product P>
__device__ __forceinline__ void multiply_groups(Sum (&sums)[2], const Group<Operand<P>>& a,
                                                const Group<Operand<P>>& b) {
  multiply_tile<P>(sums[0], a, b, 0);
  multiply_tile<P>(sums[1], a, b, 1);
}

}  // namespace sb::cuda::attention
