// One warp's strip of 16 steps of a chunk of MesaNet's systems (formulas: mesa.h): products with factors that are sums
// of two bf16 numbers, and the solver.
#pragma once
#include "kernels/cuda/decayed_attention_kernels.cuh"

namespace sb::cuda::mesa {

using attention::StepDecays;

inline constexpr int kThreads = 128, kStrip = 16, kStrips = kChunk / kStrip;  // a warp has a strip of 16 steps
// Below this, squared residuals count as 0: rows that have converged stay as they are.
inline constexpr float kTiny = 1e-30f;

// Columns 16 i .. 16 i + 15 of a warp's 16 rows as sums of two bf16 numbers, and back
struct Split {
  Left<bf16> high, low;
  __device__ void set(const Sum* x) {
    from_sums(high, x);
    Sum rest[2];
    to_sums(rest, high);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) rest[n][e] = x[n][e] - rest[n][e];
    from_sums(low, rest);
  }
  __device__ void get(Sum (&x)[2]) const {
    Sum rest[2];
    to_sums(x, high);
    to_sums(rest, low);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) x[n][e] += rest[n][e];
  }
};

// A tile in shared memory as sums of two bf16 numbers: the first ones, then the second ones
template <int Rows, int KP>
struct SplitTile {
  static constexpr int ld = leading<bf16>(KP), rest = Rows * ld, size = 2 * rest;
  bf16* data;
  // From rows of floats; elements outside rows x width are zero
  __device__ void load(const float* from, int64_t stride, int rows, int width) const {
    constexpr int pairs = KP / 2;
#pragma unroll 7
    for (int i = static_cast<int>(threadIdx.x); i < Rows * pairs; i += kThreads) {
      const int r = i / pairs, c = i % pairs * 2;
      const float* p = from + r * stride + c;
      const float x = r < rows && c < width ? p[0] : 0.f, y = r < rows && c + 1 < width ? p[1] : 0.f;
      const uint32_t high = pack(x, y);
      const float2 first = unpack(high);
      *reinterpret_cast<uint32_t*>(data + r * ld + c) = high;
      store_pair(data + rest + r * ld + c, x - first.x, y - first.y);
    }
  }
  // sums += a tile, from (row, column) of the tile on. a's columns are the tile's rows, or its columns if not
  // Transposed
  template <bool Transposed, int Tiles>
  __device__ __forceinline__ void multiply(Sum (&sums)[Tiles], const Split& a, int row, int column) const {
    const bf16* const from = data + row * ld + column;
#pragma unroll
    for (int i = 0; i < Tiles; i += 2) {
      Right<bf16> high[2], low[2];
      if constexpr (Transposed) {
        load_transposed(high, from + 8 * i, ld);
        load_transposed(low, from + rest + 8 * i, ld);
      } else {
        sb::cuda::load(high, from + 8 * i * ld, ld);
        sb::cuda::load(low, from + rest + 8 * i * ld, ld);
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) sb::cuda::multiply(sums[i + n], a.low, high[n]);
#pragma unroll
      for (int n = 0; n < 2; ++n) sb::cuda::multiply(sums[i + n], a.high, low[n]);
#pragma unroll
      for (int n = 0; n < 2; ++n) sb::cuda::multiply(sums[i + n], a.high, high[n]);
    }
  }
};

// Weights L_tj beta_j. Between strips they are products of two decays, from step j to the end of its strip and from
// there to step t.
struct Factors {
  float to_end[kChunk];                 // times beta_j
  float from_end[kStrips - 1][kChunk];  // of each strip
};

// One warp's strip of a chunk. Sums hold its rows; lane l has rows l / 4 and l / 4 + 8.
template <int KP>
struct Strip {
  static constexpr int Tiles = KP / 8, Steps = KP / 16;
  SplitTile<KP, KP> state;
  SplitTile<kChunk, KP> keys;
  const Factors* factors;
  int strip, row, pair;  // row: the lane's first one, in the chunk; pair: its columns in a tile of 8
  int steps;             // of the chunk
  float since[2];        // decay from the chunk's start, of the lane's two rows
  Sum own[2];            // weights within the strip

  __device__ void weigh(const StepDecays& decays, const float* beta, int64_t stride) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int t = row + e / 2 * 8;
      since[e / 2] = decays.since[t];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int j = kStrip * strip + 8 * n + pair + e % 2;
        own[n][e] = j < steps ? beta[j * stride] * decays.template between<Product::fp32>(j, t) : 0.f;
      }
    }
  }
  template <class Body>
  __device__ __forceinline__ void for_elements(int width, const Body& body) const {
#pragma unroll
    for (int i = 0; i < Tiles; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int t = row + e / 2 * 8, c = 8 * i + pair + e % 2;
        body(i, e, t, c, t < steps && c < width);
      }
  }
  __device__ void read(Sum (&x)[Tiles], const float* from, int64_t stride, int width) const {
    for_elements(width,
                 [&](int i, int e, int t, int c, bool inside) { x[i][e] = inside ? from[t * stride + c] : 0.f; });
  }
  __device__ void write(const Sum (&x)[Tiles], float* to, int64_t stride, int width) const {
    for_elements(width, [&](int i, int e, int t, int c, bool inside) {
      if (inside) to[t * stride + c] = x[i][e];
    });
  }
  __device__ static void split(Split (&to)[Steps], const Sum (&x)[Tiles]) {
#pragma unroll
    for (int s = 0; s < Steps; ++s) to[s].set(x + 2 * s);
  }

  // sums = c_t a times the state, or times its transpose
  template <bool Transposed>
  __device__ __forceinline__ void read_state(Sum (&sums)[Tiles], const Split (&a)[Steps]) const {
    clear(sums);
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      if constexpr (Transposed)
        state.template multiply<false>(sums, a[s], 0, 16 * s);
      else
        state.template multiply<true>(sums, a[s], 16 * s, 0);
    }
#pragma unroll
    for (int i = 0; i < Tiles; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][e] *= since[e / 2];
  }
  // L_tj beta_j (a_t . row j of `keys`) for strip `of` of the rows
  __device__ __forceinline__ void score(Split& weights, const Split (&a)[Steps], int of) const {
    Sum sums[2];
    clear(sums);
#pragma unroll
    for (int s = 0; s < Steps; ++s) keys.template multiply<false>(sums, a[s], kStrip * of, 16 * s);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[n][e] *=
            of == strip ? own[n][e]
                        : factors->from_end[of][row + e / 2 * 8] * factors->to_end[kStrip * of + 8 * n + pair + e % 2];
    weights.set(sums);
  }
  __device__ __forceinline__ void read_rows(Sum (&sums)[Tiles], const Split& weights, int of) const {
    keys.template multiply<true>(sums, weights, kStrip * of, 0);
  }

  // Solves for the right sides `residual`; the solution is left in x: a lane's tiles, kThreads apart.
  __device__ void solve(Sum (&residual)[Tiles], float4* x, const float* ridge, int iterations) const {
    const auto dot = [](float(&sums)[2]) {
      sums[0] = sum_lanes(sums[0], 1, 4);
      sums[1] = sum_lanes(sums[1], 1, 4);
    };
    float square[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
      x[i * kThreads] = float4{0, 0, 0, 0};
#pragma unroll
      for (int e = 0; e < 4; ++e) square[e / 2] = fmaf(residual[i][e], residual[i][e], square[e / 2]);
    }
    dot(square);
    Split direction[Steps];
    split(direction, residual);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      Sum image[Tiles];
      read_state<false>(image, direction);
      for (int of = 0; of <= strip; ++of) {
        Split weights;
        score(weights, direction, of);
        read_rows(image, weights, of);
      }
      float step[2] = {0, 0}, next[2] = {0, 0};
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
        Sum p[2];
        direction[s].get(p);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const float2 more = load_pair(ridge + 16 * s + 8 * n + pair);
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            float& y = image[2 * s + n][e];
            y = fmaf(e % 2 ? more.y : more.x, p[n][e], y);
            step[e / 2] = fmaf(p[n][e], y, step[e / 2]);
          }
        }
      }
      dot(step);
#pragma unroll
      for (int e = 0; e < 2; ++e) step[e] = square[e] / (step[e] + kTiny);
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
        Sum p[2];
        direction[s].get(p);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          float4 sum = x[(2 * s + n) * kThreads];
          sum.x = fmaf(step[0], p[n][0], sum.x), sum.y = fmaf(step[0], p[n][1], sum.y);
          sum.z = fmaf(step[1], p[n][2], sum.z), sum.w = fmaf(step[1], p[n][3], sum.w);
          x[(2 * s + n) * kThreads] = sum;
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            float& r = residual[2 * s + n][e];
            r = fmaf(-step[e / 2], image[2 * s + n][e], r);
            next[e / 2] = fmaf(r, r, next[e / 2]);
          }
        }
      }
      dot(next);
      const float turn[2] = {next[0] / (square[0] + kTiny), next[1] / (square[1] + kTiny)};
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
        Sum p[2];
        direction[s].get(p);
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) p[n][e] = fmaf(turn[e / 2], p[n][e], residual[2 * s + n][e]);
        direction[s].set(p);
      }
      square[0] = next[0], square[1] = next[1];
    }
  }
};

}  // namespace sb::cuda::mesa
