// Groups of 16 channels (rows) and 16 steps (columns) for the gradients of channels: their decays, and products over 8
// steps.
#pragma once
#include "kernels/cuda/general_delta_chunk.cuh"

namespace sb::cuda::attention {

// Decay factors in blocks of 1, 2, 4, 8, 16 steps: from the block's start to after the step, from after the step to the
// block's end and, for each pair of steps, of the whole block
template <class E>
struct LevelDecays {
  float since[8], until[8], total[4];
  __device__ LevelDecays(const GeneralProblem& p, const ChunkPlace& c, int channel, const Place& at) {
    const int step = at.strip * 16 + at.pair * 2, k = channel + at.row;
    const int64_t by_step = p.in.g_time, by_key = 8 * p.in.g_key;
    const float* g = p.in.g + c.b * p.in.g_batch + c.h * p.in.g_head + (c.begin + step) * by_step + k * p.in.g_key;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int steps = e / 4 * 8 + e % 2, keys = e % 4 / 2;
      const bool inside = p.in.g && step + steps < c.steps && k + 8 * keys < p.K;
      since[e] = inside ? decay_of<E>(g[steps * by_step + keys * by_key]) : 1.f;
      until[e] = 1;
    }
  }
  // Whether the step is in the later half of a block of 2^(l + 1) steps
  __device__ static bool later(int e, int l, const Place& at) {
    return l == 0 ? e % 2 : l == 1 ? at.pair % 2 : l == 2 ? at.pair / 2 : e / 4;
  }
  // Merges blocks of 2^l steps
  __device__ void merge(int l, const Place& at) {
    if (l == 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        until[2 * i] = since[2 * i + 1];
        total[i] = since[2 * i + 1] *= since[2 * i];
      }
      return;
    }
    float other[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) other[i] = l == 3 ? total[(i + 2) % 4] : __shfl_xor_sync(~0u, total[i], l);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (later(e, l, at))
        since[e] *= other[e / 2];
      else
        until[e] *= other[e / 2];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) total[i] *= other[i];
  }
};

// Elements of a pair that are kept; the others become zero
__device__ inline uint32_t keep(uint32_t x, bool first, bool second) {
  return x & ((first ? 0xffffu : 0u) | (second ? 0xffff0000u : 0u));
}
__device__ inline float2 keep(float2 x, bool first, bool second) {
  return make_float2(first ? x.x : 0.f, second ? x.y : 0.f);
}
// Of each element, one of the pairs is zero
__device__ inline uint32_t either(uint32_t x, uint32_t y) {
  return x | y;
}
__device__ inline float2 either(float2 x, float2 y) {
  return make_float2(x.x + y.x, x.y + y.y);
}
__device__ inline uint32_t first_and_second(uint32_t x, uint32_t y) {
  return (x & 0xffffu) | (y & 0xffff0000u);
}
__device__ inline float2 first_and_second(float2 x, float2 y) {
  return make_float2(x.x, y.y);
}

// sum (16 channels x 8 rows of pairs) += x a^T, over the steps 8 k to 8 k + 7 of the group x
template <Product P>
__device__ __forceinline__ void multiply_half(Sum& sum, const Group<Operand<P>>& x, Pair<Operand<P>> a, int k) {
  if constexpr (P == Product::bf16) {
    const uint32_t left[2] = {x.r[2 * k], x.r[2 * k + 1]};
    mma_bf16(sum, left, a);
  } else {
    const float2 first = x.r[2 * k], second = x.r[2 * k + 1];
    multiply(sum, Left<float>{{first.x, second.x, first.y, second.y}}, Right<float>{{a.x, a.y}}, P == Product::fp32);
  }
}
// sum += x a^T + y b^T, the same of two groups
template <Product P>
__device__ __forceinline__ void multiply_halves(Sum& sum, const Group<Operand<P>>& x, Pair<Operand<P>> a,
                                                const Group<Operand<P>>& y, Pair<Operand<P>> b, int k) {
  if constexpr (P == Product::bf16) {
    const uint32_t left[4] = {x.r[2 * k], x.r[2 * k + 1], y.r[2 * k], y.r[2 * k + 1]}, right[2] = {a, b};
    mma_bf16(sum, left, right);
  } else {
    multiply_half<P>(sum, x, a, k);
    multiply_half<P>(sum, y, b, k);
  }
}

}  // namespace sb::cuda::attention
