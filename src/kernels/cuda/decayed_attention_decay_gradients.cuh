// The gradients of a chunk's log-decays with one decay per step and head.
#pragma once
#include "kernels/cuda/decayed_attention_kernels.cuh"

namespace sb::cuda::attention {

// One warp: dg_t = whole + (sum of `later` from t on) + (sum of `earlier` before t), or their sum over the chunk's
// steps for Decay::fixed. A lane has two steps: earlier of 2 lane and the next, later of the steps in reverse order.
__device__ inline void write_decay_gradients(const BackwardArguments& a, float whole, float (&later)[2],
                                             float (&earlier)[2], int b, int h, int chunk, int steps, int lane) {
  const float own[2] = {earlier[0], earlier[1]};
  running_sums(later, lane);
  running_sums(earlier, lane);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int t = 2 * lane + i;
    const float x = whole + __shfl_sync(~0u, later[1 - i], 31 - lane) + (earlier[i] - own[i]);
    if (t >= steps) continue;
    if (a.p.decay == Decay::scalar)
      a.d.dg[b * a.d.dg_batch + (static_cast<int64_t>(chunk) * kChunk + t) * a.d.dg_time + h * a.d.dg_head] = x;
    sum += x;
  }
  if (a.p.decay != Decay::fixed) return;
  sum = sum_lanes(sum, 1, 32);
  if (lane == 0) a.dg_parts[(static_cast<int64_t>(b) * a.z.H + h) * a.z.chunks + chunk] = sum;
}

}  // namespace sb::cuda::attention
