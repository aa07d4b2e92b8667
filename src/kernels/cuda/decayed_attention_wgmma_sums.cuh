// Sums over the steps of a chunk and head from which the gradients of log-decays, write factors and skip are computed.
#pragma once
#include "kernels/cuda/decayed_attention_wgmma.cuh"

namespace sb::cuda::attention {

// Partial results of the warps for one head and chunk, for the gradients of log-decays, factors and skip:
// q_i . dq_i of S and x_j . (dv_j of dS); sums of P_ij do_i . x_j over i, and of P_ij do_i . v_j over 16 j
struct HeadSums {
  float by_rows[2][kChunk], key[kChunk], query[4][kChunk], along[8], skip[4];
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
    if (a.p.write && t < rows)
      a.d.d_write[b * a.d.d_write_batch + (begin + t) * a.d.d_write_time + h * a.d.d_write_head] = value;
    later[i] = s.by_rows[0][kChunk - 1 - t];
    earlier[i] = steps.write[t] * value - ((s.query[0][t] + s.query[1][t]) + (s.query[2][t] + s.query[3][t]));
  }
  if (a.p.decay == Decay::unit) return;
  float along = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) along += s.along[i];
  along *= steps.total();
  const float own[2] = {earlier[0], earlier[1]};
  running_sums(later, lane);
  running_sums(earlier, lane);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int t = 2 * lane + i;
    const float x = along + __shfl_sync(~0u, later[1 - i], 31 - lane) + (earlier[i] - own[i]);
    if (t >= rows) continue;
    if (a.p.decay == Decay::scalar) a.d.dg[b * a.d.dg_batch + (begin + t) * a.d.dg_time + h * a.d.dg_head] = x;
    sum += x;
  }
  if (a.p.decay != Decay::fixed) return;
  sum = sum_lanes(sum, 1, 32);
  if (lane == 0) a.dg_parts[part] = sum;
}

}  // namespace sb::cuda::attention
