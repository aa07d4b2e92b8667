// Sums over the steps of a chunk and head from which the gradients of log-decays, write factors and skip are computed.
#pragma once
#include "kernels/cuda/decayed_attention_decay_gradients.cuh"
#include "kernels/cuda/decayed_attention_wgmma.cuh"

namespace sb::cuda::attention {

// Partial results of the warps for one head and chunk, for the gradients of log-decays, factors and skip:
// q_i . dq_i of S and x_j . (dv_j of dS); sums of P_ij do_i . x_j over i, and of P_ij do_i . v_j over 16 j. With
// `before`, these sums have no diagonal, which is in `own`.
struct HeadSums {
  float by_rows[2][kChunk], key[kChunk], query[4][kChunk], along[8], skip[4], own[kChunk];
};

// One warp: dg_t = c_end <dS, S> + sum_{i >= t} q_i . dq_i of S + sum_{j < t} (v_j . dv_j - sum_i P_ji do_j . v_i); dw;
// dD's part
__device__ inline void write_head(const BackwardArguments& a, const HeadSums& s, const GroupSteps& steps, int b, int h,
                                  int chunk, int rows, int lane) {
  const int64_t part = (static_cast<int64_t>(b) * a.z.H + h) * a.z.chunks + chunk;
  const int64_t begin = static_cast<int64_t>(chunk) * kChunk;
  if (a.p.skip && lane == 0) a.skip_parts[part] = (s.skip[0] + s.skip[1]) + (s.skip[2] + s.skip[3]);
  float later[2], earlier[2];  // later: steps in reverse order
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int t = 2 * lane + i;
    const float value = s.key[t] + s.by_rows[1][t];
    if (a.p.write && t < rows) {
      const int64_t at = b * a.d.d_write_batch + (begin + t) * a.d.d_write_time + h * a.d.d_write_head;
      a.d.d_write[at] = a.p.before ? value + s.own[t] : value;
      if (a.p.before && begin + t + 1 < a.z.T) a.d.d_before[at + a.d.d_write_time] = value;
      if (a.p.before && begin + t == 0) a.d.d_before[at] = 0;
    }
    later[i] = s.by_rows[0][kChunk - 1 - t];
    earlier[i] = steps.write[t] * value - ((s.query[0][t] + s.query[1][t]) + (s.query[2][t] + s.query[3][t]));
  }
  if (a.p.decay == Decay::unit) return;
  float along = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) along += s.along[i];
  write_decay_gradients(a, along * steps.total(), later, earlier, b, h, chunk, rows, lane);
}

// This thread's part of the sum of x y over two tiles, for two groups
template <class Tile>
__device__ inline float products_of(const unsigned char* x, const unsigned char* y, int thread) {
  float sum = 0;
#pragma unroll 3
  for (int i = thread % (2 * kGroupThreads) * 16; i < Tile::bytes; i += 2 * kGroupThreads * 16) {
    const uint4 u = *reinterpret_cast<const uint4*>(x + i), v = *reinterpret_cast<const uint4*>(y + i);
    const uint32_t us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float2 a = unpack(us[e]), b = unpack(vs[e]);
      sum = fmaf(a.x, b.x, fmaf(a.y, b.y, sum));
    }
  }
  return sum;
}

// Leaves a warp's sums over pairs (weigh_pairs)
template <int Sums>
__device__ __forceinline__ void store_pair_sums(HeadSums& sums, float (&by_query)[Sums], const float (&by_key)[2],
                                                float along_out, bool skip, int strip, int row, int pair, int lane) {
  constexpr int NP = Sums / 2;
  // Over the eight rows of the warp's lanes; each lane keeps two of the sixteen sums.
  fold_sums<NP, 16>(by_query, lane);
  fold_sums<NP / 2, 8>(by_query, lane);
  fold_sums<NP / 4, 4>(by_query, lane);
  // the sums 2 n and 2 n + 1, n of three bits of the lane
  const int mine = (lane >> 4 & 1) * 4 + (lane >> 3 & 1) * 2 + (lane >> 2 & 1);
  *reinterpret_cast<float2*>(sums.query[strip] + mine * 8 + pair * 2) = {by_query[0], by_query[1]};
#pragma unroll
  for (int up = 0; up < 2; ++up) {
    const float x = sum_lanes(by_key[up], 1, 4);
    if (pair == 0) sums.key[row + 8 * up] = x;
  }
  if (skip) {
    along_out = sum_lanes(along_out, 1, 32);
    if (lane == 0) sums.skip[strip] = along_out;
  }
}

// Writes the thread's two rows of dx
template <int NV>
__device__ __forceinline__ void write_rows(bf16* dx, const float (&dv)[NV][4], int64_t stride, int row, int rows,
                                           int V) {
#pragma unroll
  for (int up = 0; up < 2; ++up) {
    if (row + 8 * up >= rows) continue;
#pragma unroll
    for (int n = 0; n < NV; ++n)
      if (n * 8 < V)
        *reinterpret_cast<uint32_t*>(dx + up * 8 * stride + n * 8) = pack(dv[n][2 * up], dv[n][2 * up + 1]);
  }
}

// Rounds the thread's part of a matrix of pairs, times `scale`, to a tile
template <int NP>
__device__ __forceinline__ void store_pairs(unsigned char* tile, const float (&x)[NP][4], float scale, int row,
                                            int pair) {
  const int place = PairTile::place(row, 0) + pair * 4;
#pragma unroll
  for (int n = 0; n < NP; ++n)
#pragma unroll
    for (int up = 0; up < 2; ++up)
      *pair_of<PairTile>(tile, place + up * 8 * 128, n) = pack(scale * x[n][2 * up], scale * x[n][2 * up + 1]);
}

// The part of a head's dq (from dO S^T) or dk (from V dS^T) through the states: calls put(n, up, w, y0, y1) with two
// neighbours of factor y, and the write factor w, and leaves their products with the rows of q or k
template <bool queries, int NK, class Put>
__device__ __forceinline__ void scale_key_rows(const float (&y)[NK][4], HeadSums& sums, const GroupSteps& steps,
                                               unsigned char* keys, float scale, int row, int pair, const Put& put) {
  const int place = KeyTile::place(row, 0) + pair * 4;
#pragma unroll
  for (int up = 0; up < 2; ++up) {
    const float factor = queries ? scale * steps.since[row + 8 * up] : steps.until[row + 8 * up];
    const float write = queries ? 1.f : steps.write[row + 8 * up];
    float along_row = 0;
#pragma unroll
    for (int n = 0; n < NK; ++n) {
      const float y0 = factor * y[n][2 * up], y1 = factor * y[n][2 * up + 1];
      const float2 key = unpack(*pair_of<KeyTile>(keys, place + up * 8 * 128, n));
      put(n, up, write, y0, y1);
      along_row = fmaf(key.x, y0, fmaf(key.y, y1, along_row));
    }
    along_row = sum_lanes(along_row, 1, 4);
    if (pair == 0) sums.by_rows[queries ? 0 : 1][row + 8 * up] = along_row;
  }
}

// y += N^T K for dq, N Q for dk
template <bool queries, int NK>
__device__ __forceinline__ void add_pairs(float (&y)[NK][4], uint32_t pairs, uint32_t k, uint32_t q) {
  wgmma_fence();
  if constexpr (queries)
    start_product<kChunk / 16>(y, Down<PairTile>{pairs}, Down<KeyTile>{k}, true);
  else
    start_product<kChunk / 16>(y, Along<PairTile>{pairs}, Down<KeyTile>{q}, true);
  wgmma_commit();
  wgmma_wait<0>(y);
}

}  // namespace sb::cuda::attention
