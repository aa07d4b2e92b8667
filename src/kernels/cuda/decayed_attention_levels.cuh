// Pairs of steps within 16 rows if every key channel has its own decay. Let s = 1, 2, 4 or 8 be the value of the
// highest bit in which the indices of the rows i > j differ. Then i is in the later half and j in the earlier half of a
// block of 2 s rows. With
//   x_i = q_i times the decays from the start of the later half to after i,
//   x_j = k_j times the decays from after j to the end of the earlier half,
// q_i . (decay from j to i) k_j = x_i . x_j. So one tile of x for each s gives all pairs, without exponents above 0.
#pragma once
#include "kernels/cuda/decayed_attention_kernels.cuh"

namespace sb::cuda::attention {

inline constexpr int kGroup = 16;  // channels that a warp processes at once; a thread holds 8 elements of 16 x 16
inline constexpr int kLevels = 4;

struct Element8 {
  // row and column of element e
  __device__ static int row(int e, const Place& at) { return e % 4 / 2 * 8 + at.row; }
  __device__ static int column(int e, const Place& at) { return e / 4 * 8 + at.pair * 2 + e % 2; }
};

// Decay factors in blocks of s rows: from the block's start to after the row, from after the row to the block's end,
// and of the whole block.
struct BlockDecays {
  float since[8], until[8], total[8];
  // g: log-decays of the 16 rows from the group's first channel on; there is no decay outside of rows x channels
  template <class E>
  __device__ void read(const float* g, int64_t stride, int rows, int channels, const Place& at,
                       int64_t channel_stride = 1) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int r = Element8::row(e, at), c = Element8::column(e, at);
      const float log = r < rows && c < channels ? g[r * stride + c * channel_stride] : 0.f;
      since[e] = total[e] = sizeof(E) == 2 ? expf(log) : exp_near_one(log);
      until[e] = 1;
    }
  }
  __device__ static bool later(int e, int s, const Place& at) {
    return s == 8 ? e % 4 / 2 : at.row / s % 2;
  }
  // Merges blocks of s rows into blocks of 2 s rows
  __device__ void merge(int s, const Place& at) {
    if (s == 8) {
#pragma unroll
      for (int n = 0; n < 8; n += 4)
#pragma unroll
        for (int c = n; c < n + 2; ++c) {
          since[c + 2] *= total[c];
          until[c] *= total[c + 2];
          total[c] = total[c + 2] = total[c] * total[c + 2];
        }
      return;
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float other = __shfl_xor_sync(~0u, total[e], 4 * s);
      if (later(e, s, at))
        since[e] *= other;
      else
        until[e] *= other;
      total[e] *= other;
    }
  }
};

template <class E>
__device__ inline void read_group(float (&x)[8], const E* tile, int ld, const Place& at) {
#pragma unroll
  for (int e = 0; e < 8; e += 2) {
    const float2 y = load_pair(tile + Element8::row(e, at) * ld + Element8::column(e, at));
    x[e] = y.x;
    x[e + 1] = y.y;
  }
}
template <class E>
__device__ inline void write_group(const float (&x)[8], E* tile, int ld, const Place& at) {
#pragma unroll
  for (int e = 0; e < 8; e += 2) store_pair(tile + Element8::row(e, at) * ld + Element8::column(e, at), x[e], x[e + 1]);
}

// The level log2(s) of the pair of rows i > j
__device__ inline int level_of(int i, int j) {
  return 31 - __clz(i ^ j);
}

// Product of the decays of the strips between `from` and `to` (both excluded), for one channel
template <int KP>
__device__ inline float strips_between(const float* strips, int from, int to, int channel) {
  float f = 1;
#pragma unroll
  for (int s = 0; s < 4; ++s)
    if (s > from && s < to) f *= strips[s * KP + channel];
  return f;
}

}  // namespace sb::cuda::attention
