// conv4 for rows that are aligned to 16 bytes. Copies rows to shared memory in advance, for all channels of a block.
#pragma once
#include "kernels/cuda/conv4_walk.cuh"
#include "kernels/cuda/ptx.cuh"

namespace sb::cuda {
namespace {

constexpr int kStages = 3, kStageRows = 8, kStageThreads = 128, kStageChannels = 2 * kStageThreads;
constexpr int kForwardBlocks = 8, kBackwardBlocks = 6;  // per multiprocessor

template <class E>
using Stage = E[kStageRows][kStageChannels];

// Starts copying steps s, s + 1, … of a stretch of `steps` steps, and the first `channels` channels of each. The rest
// of the stage becomes zero.
template <class E>
__device__ __forceinline__ void copy_rows(Stage<E>& to, const E* from, int64_t step, int s, int steps, int channels) {
  constexpr int piece = 16 / sizeof(E), pieces = kStageChannels / piece, together = kStageThreads / pieces;
  const int column = static_cast<int>(threadIdx.x) % pieces * piece;
#pragma unroll
  for (int i = 0; i < kStageRows / together; ++i) {
    const int row = static_cast<int>(threadIdx.x) / pieces + i * together;
    const bool there = s + row < steps && column < channels;
    copy_async(&to[row][column], from + (there ? (s + row) * step + column : 0), there ? 16 : 0);
  }
}

// Returns the thread's two channels of a row
template <class E>
__device__ __forceinline__ Floats<2> staged(const Stage<E>& stage, int row) {
  const Few<E, 2> few = *reinterpret_cast<const Few<E, 2>*>(&stage[row][2 * threadIdx.x]);
  return {{few[0], few[1]}};
}

// Calls work(slot, s) for every kStageRows steps of 0..count-1. copy(slot, s) starts to copy them two rounds earlier.
template <class Copy, class Work>
__device__ __forceinline__ void walk_stages(int count, Copy copy, Work work) {
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    if (i * kStageRows < count) copy(i, i * kStageRows);
    copy_commit();
  }
  int slot = 0;
  for (int s = 0; s < count; s += kStageRows) {
    copy_wait<kStages - 2>();
    __syncthreads();
    const int further = s + (kStages - 1) * kStageRows;
    if (further < count) copy(slot == 0 ? kStages - 1 : slot - 1, further);
    copy_commit();
    work(slot, s);
    slot = slot == kStages - 1 ? 0 : slot + 1;
  }
  __syncthreads();  // the next stretch reuses the stages
}

template <class E>
__global__ void __launch_bounds__(kStageThreads, kForwardBlocks)
    conv_forward_staged(const __grid_constant__ ConvRows q) {
  __shared__ alignas(16) Stage<E> stages[kStages];
  const auto thread = static_cast<int>(threadIdx.x);
  Walk<E, 2, true> walk(q, static_cast<int>(blockIdx.y) * kStageThreads + thread);
  walk.start(static_cast<int>(blockIdx.x));
  const int steps = walk.end - walk.begin, channels = walk.left + 2 * thread;
  const bool own = walk.left > 0;
  const E* const from = walk.row(q.p.x) - 2 * thread;
  E* to = walk.row(q.y);
  Floats<2> x[kStageRows + 3] = {};
  if (own) walk.past(x);
  const auto copy = [&](int slot, int s) { copy_rows(stages[slot], from, q.p.x.time, s, steps, channels); };
  walk_stages(steps, copy, [&](int slot, int s) {
#pragma unroll
    for (int i = 0; i < kStageRows; ++i) {
      x[3 + i] = staged(stages[slot], i);
      Floats<2> y;
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        y.v[c] = walk.z(c, x + i);
        if (q.p.silu) y.v[c] *= sigmoid(y.v[c]);
      }
      if (own && s + i < steps) store_few<true>(to, y, 2);
      to += q.y.time;
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) x[i] = x[kStageRows + i];
  });
}

template <class E>
__global__ void __launch_bounds__(kStageThreads, kBackwardBlocks)
    conv_backward_staged(const __grid_constant__ ConvRows q) {
  __shared__ alignas(16) Stage<E> inputs[kStages], gradients[kStages];
  const auto thread = static_cast<int>(threadIdx.x), part = static_cast<int>(blockIdx.x);
  Walk<E, 2, true> walk(q, static_cast<int>(blockIdx.y) * kStageThreads + thread);
  const int channels = walk.left + 2 * thread;
  const bool has = walk.left > 0;
  float dw[2][4] = {}, db[2] = {};
  for (int stretch = part; stretch < q.p.batch * q.stretches; stretch += q.count) {
    walk.start(stretch);
    // Up to three steps after the stretch are needed for its last dx.
    const int own = walk.end - walk.begin, steps = min(own + 3, q.p.time - walk.begin);
    const E *const from = walk.row(q.p.x) - 2 * thread, *const gy = walk.row(q.gy) - 2 * thread;
    E* dx = walk.row(q.dx) - 3 * q.dx.time;                    // three steps before the current one
    Floats<2> x[kStageRows + 3] = {}, g[kStageRows + 3] = {};  // inputs and gradients of z, after the previous three
    if (has) walk.past(x);
    const auto copy = [&](int slot, int s) {
      copy_rows(inputs[slot], from, q.p.x.time, s, steps, channels);
      copy_rows(gradients[slot], gy, q.gy.time, s, steps, channels);
    };
    walk_stages(own + 3, copy, [&](int slot, int s) {
      const bool inner = s >= 3 && s + kStageRows <= own;
#pragma unroll
      for (int i = 0; i < kStageRows; ++i) {
        x[3 + i] = staged(inputs[slot], i);
        g[3 + i] = staged(gradients[slot], i);     // zero after the last step
        const bool counts = inner || s + i < own;  // later steps count in the next stretch
        Floats<2> d;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& gz = g[3 + i].v[c];
          if (q.p.silu) {
            const float z = walk.z(c, x + i);
            gz *= silu_slope(z, sigmoid(z));
          }
          const float counted = counts ? gz : 0.f;
#pragma unroll
          for (int k = 0; k < 4; ++k) dw[c][k] += counted * x[i + k].v[c];
          db[c] += counted;
          d.v[c] = walk.w[c][3] * g[i].v[c] + walk.w[c][2] * g[i + 1].v[c] + walk.w[c][1] * g[i + 2].v[c] +
                   walk.w[c][0] * gz;
        }
        const int to = s + i - 3;
        if (has && (inner || (to >= 0 && to < own))) {
          store_few<true>(dx, d, 2);
        } else if (has && to < 0 && walk.begin == 0 && q.d_tail) {
          store_few<false>(walk.tail(q.d_tail, to), d, walk.left);
        }
        dx += q.dx.time;
      }
#pragma unroll
      for (int i = 0; i < 3; ++i) x[i] = x[kStageRows + i], g[i] = g[kStageRows + i];
    });
  }
  if (!has) return;
  float* const sums = q.parts + static_cast<int64_t>(part) * 5 * q.p.channels;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[(walk.channel + c) * 4 + k] = dw[c][k];
    sums[4 * q.p.channels + walk.channel + c] = db[c];
  }
}

}  // namespace
}  // namespace sb::cuda
