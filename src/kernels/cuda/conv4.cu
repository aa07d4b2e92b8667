// A thread processes a few channels over a stretch of time, with the last three inputs in registers. The backward pass
// also keeps the last three gradients of z: dx_{t-3} is complete when the gradient of z_t is known. Rows that are
// aligned to 16 bytes are first copied to shared memory (conv4_staged.cuh); the thread reads others directly.
#include "kernels/cuda/conv4.h"

#include <limits>

#include "kernels/cuda/conv4_staged.cuh"

namespace sb::cuda {
namespace {

// How a pass divides its work: channels per thread, steps per stretch, steps read together, blocks per multiprocessor
template <int Channels, int Stretch, int Ahead, int Blocks>
struct Cut {
  static constexpr int channels = Channels, stretch = Stretch, ahead = Ahead, blocks = Blocks;
};
using ForwardCut = Cut<2, 48, 8, 4>;
using BackwardCut = Cut<2, 45, 8, 2>;

template <class E, class C, bool vectors>
__global__ void __launch_bounds__(kThreads, C::blocks) conv_forward(const __grid_constant__ ConvRows q) {
  constexpr int W = C::channels, ahead = C::ahead;
  const int64_t id = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int stretch = static_cast<int>(id / q.few);
  if (stretch >= q.count) return;
  Walk<E, W, vectors> walk(q, static_cast<int>(id - static_cast<int64_t>(stretch) * q.few));
  walk.start(stretch);
  const int steps = walk.end - walk.begin, in = static_cast<int>(q.p.x.time), out = static_cast<int>(q.y.time);
  const E* const from = walk.row(q.p.x);
  E* const to = walk.row(q.y);
  Few<E, W> next[ahead];
  Floats<W> x[ahead + 3];
  const auto read = [&](int s) {
#pragma unroll
    for (int i = 0; i < ahead; ++i) load_few<vectors>(next[i], from + min(s + i, steps - 1) * in, walk.left);
  };
  read(0);
  walk.past(x);
  for (int s = 0; s < steps; s += ahead) {
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
#pragma unroll
      for (int c = 0; c < W; ++c) x[3 + i].v[c] = next[i][c];
    }
    if (s + ahead < steps) read(s + ahead);
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      Floats<W> y;
#pragma unroll
      for (int c = 0; c < W; ++c) {
        y.v[c] = walk.z(c, x + i);
        if (q.p.silu) y.v[c] *= sigmoid(y.v[c]);
      }
      if (s + i < steps) store_few<vectors>(to + (s + i) * out, y, walk.left);
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) x[i] = x[ahead + i];
  }
}

template <class E, class C, bool vectors>
__global__ void __launch_bounds__(kThreads, C::blocks) conv_backward(const __grid_constant__ ConvRows q) {
  constexpr int W = C::channels, ahead = C::ahead;
  const int64_t id = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int part = static_cast<int>(id / q.few);
  if (part >= q.count) return;
  Walk<E, W, vectors> walk(q, static_cast<int>(id - static_cast<int64_t>(part) * q.few));
  float dw[W][4] = {}, db[W] = {};
  const int in = static_cast<int>(q.p.x.time), by = static_cast<int>(q.gy.time), out = static_cast<int>(q.dx.time);
  for (int stretch = part; stretch < q.p.batch * q.stretches; stretch += q.count) {
    walk.start(stretch);
    // Up to three steps after the stretch are needed for its last dx.
    const int own = walk.end - walk.begin, steps = min(own + 3, q.p.time - walk.begin);
    const E *const from = walk.row(q.p.x), *const gy = walk.row(q.gy);
    E* const dx = walk.row(q.dx);
    Few<E, W> next_x[ahead], next_g[ahead];
    Floats<W> x[ahead + 3], g[ahead + 3] = {};  // inputs and gradients of z, the last three first
    const auto read = [&](int s) {
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        const int at = min(s + i, steps - 1);
        load_few<vectors>(next_x[i], from + at * in, walk.left);
        load_few<vectors>(next_g[i], gy + at * by, walk.left);
      }
    };
    // ahead steps; at an end of the stretch some count in part
    const auto advance = [&]<bool at_end>(int s) {
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        const bool here = !at_end || s + i < steps, counts = !at_end || s + i < own;
#pragma unroll
        for (int c = 0; c < W; ++c) {
          float gz = g[3 + i].v[c];
          if (q.p.silu) {
            const float z = walk.z(c, x + i);
            gz *= silu_slope(z, sigmoid(z));
          }
          g[3 + i].v[c] = here ? gz : 0.f;
          const float counted = counts ? gz : 0.f;  // the stretch after this one counts the others
#pragma unroll
          for (int k = 0; k < 4; ++k) dw[c][k] += counted * x[i + k].v[c];
          db[c] += counted;
        }
        Floats<W> d;
#pragma unroll
        for (int c = 0; c < W; ++c)
          d.v[c] = walk.w[c][3] * g[i].v[c] + walk.w[c][2] * g[i + 1].v[c] + walk.w[c][1] * g[i + 2].v[c] +
                   walk.w[c][0] * g[i + 3].v[c];
        const int to = s + i - 3;
        if (!at_end || (to >= 0 && to < own)) {
          store_few<vectors>(dx + to * out, d, walk.left);
        } else if (to < 0 && walk.begin == 0 && q.d_tail) {
          store_few<false>(walk.tail(q.d_tail, to), d, walk.left);
        }
      }
    };
    read(0);
    walk.past(x);
    for (int s = 0; s < own + 3; s += ahead) {
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
#pragma unroll
        for (int c = 0; c < W; ++c) x[3 + i].v[c] = next_x[i][c], g[3 + i].v[c] = next_g[i][c];
      }
      if (s + ahead < steps) read(s + ahead);
      if (s >= ahead && s + ahead <= own)
        advance.template operator()<false>(s);
      else
        advance.template operator()<true>(s);
#pragma unroll
      for (int i = 0; i < 3; ++i) x[i] = x[ahead + i], g[i] = g[ahead + i];
    }
  }
  float* const sums = q.parts + static_cast<int64_t>(part) * 5 * q.p.channels;
#pragma unroll
  for (int c = 0; c < W; ++c) {
    if (c >= walk.left) break;
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[(walk.channel + c) * 4 + k] = dw[c][k];
    sums[4 * q.p.channels + walk.channel + c] = db[c];
  }
}

// ---- launches ----

bool valid(const Conv4& p) {
  return p.batch >= 0 && p.time >= 0 && p.channels > 0 && p.weight && p.x.data && p.x.time < 1 << 24;
}

template <class C>
ConvRows rows_of(const Conv4& p) {
  ConvRows q{p};
  q.few = (p.channels + C::channels - 1) / C::channels;
  q.stretch = C::stretch;
  q.stretches = (p.time + C::stretch - 1) / C::stretch;
  return q;
}

// Enough threads to fill the GPU, each with the same number of stretches
int parts_of(const ConvRows& q) {
  const int wanted = multiprocessors() * BackwardCut::blocks * kThreads;
  const int stretches = std::max(1, q.p.batch * q.stretches);
  const int most = std::max(1, std::min(kMaxParts, wanted / q.few)), rounds = (stretches + most - 1) / most;
  return (stretches + rounds - 1) / rounds;
}

template <class E>
bool vectors(const ConvRows& q, int few) {
  const auto fits = [few](const auto& f) {
    return reinterpret_cast<uintptr_t>(f.data) % (few * sizeof(E)) == 0 && f.batch % few == 0 && f.time % few == 0;
  };
  return q.p.channels % few == 0 && fits(q.p.x) && fits(q.y) && fits(q.gy) && fits(q.dx);
}

unsigned blocks_of(const ConvRows& q) {
  return static_cast<unsigned>((static_cast<int64_t>(q.count) * q.few + kThreads - 1) / kThreads);
}

// Rows that a block's copies can take
template <class E>
bool stageable(const ConvRows& q) {
  return vectors<E>(q, 16 / sizeof(E));
}

unsigned stage_columns(const Conv4& p) {
  return static_cast<unsigned>((p.channels + kStageChannels - 1) / kStageChannels);
}

// Chooses stretches and parts for the shortest total time over all blocks, with an overhead of some steps per stretch.
ConvRows staged_rows_of(const Conv4& p, int blocks) {
  constexpr int more = 16;
  ConvRows q{p};
  const int at_once = std::max(1, std::min(kMaxParts, multiprocessors() * blocks / static_cast<int>(stage_columns(p))));
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int cuts = 1; cuts <= 64; ++cuts) {
    const int stretch = std::max(1, (p.time + cuts - 1) / cuts), stretches = (p.time + stretch - 1) / stretch;
    const int64_t all = static_cast<int64_t>(p.batch) * stretches;
    const int64_t rounds = std::max<int64_t>(1, (all + at_once - 1) / at_once);
    if (rounds * (stretch + more) >= least) continue;
    least = rounds * (stretch + more);
    q.stretch = stretch, q.stretches = stretches;
    q.count = static_cast<int>((all + rounds - 1) / rounds);
  }
  return q;
}

}  // namespace

cudaError_t conv4_forward(const Conv4& p, const Frames<void>& y, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  if (p.batch == 0 || p.time == 0) return cudaSuccess;
  ConvRows q = rows_of<ForwardCut>(p);
  q.y = y;
  q.count = p.batch * q.stretches;
  return with_element(p.element, [&]<class E>() {
    if (stageable<E>(q)) {
      ConvRows staged = staged_rows_of(p, kForwardBlocks);
      staged.y = y;
      const dim3 grid(static_cast<unsigned>(p.batch * staged.stretches), stage_columns(p));
      conv_forward_staged<E><<<grid, kStageThreads, 0, stream>>>(staged);
    } else if (vectors<E>(q, ForwardCut::channels))
      conv_forward<E, ForwardCut, true><<<blocks_of(q), kThreads, 0, stream>>>(q);
    else
      conv_forward<E, ForwardCut, false><<<blocks_of(q), kThreads, 0, stream>>>(q);
    return cudaGetLastError();
  });
}

size_t conv4_scratch_bytes(const Conv4& p) {
  const int parts = std::max(parts_of(rows_of<BackwardCut>(p)), staged_rows_of(p, kBackwardBlocks).count);
  return sizeof(float) * 5 * static_cast<size_t>(p.channels) * parts;
}

cudaError_t conv4_backward(const Conv4& p, const Frames<const void>& gy, const Frames<void>& dx, float* d_weight,
                           float* d_bias, void* d_tail, void* scratch, cudaStream_t stream) {
  if (!valid(p) || p.batch == 0 || p.time == 0) return cudaErrorInvalidValue;
  ConvRows q = rows_of<BackwardCut>(p);
  q.gy = gy, q.dx = dx, q.d_tail = d_tail;
  q.parts = static_cast<float*>(scratch);
  q.count = parts_of(q);
  const cudaError_t status = with_element(p.element, [&]<class E>() {
    if (stageable<E>(q)) {
      ConvRows staged = staged_rows_of(p, kBackwardBlocks);
      q.stretch = staged.stretch, q.stretches = staged.stretches, q.count = staged.count;
      const dim3 grid(static_cast<unsigned>(q.count), stage_columns(p));
      conv_backward_staged<E><<<grid, kStageThreads, 0, stream>>>(q);
    } else if (vectors<E>(q, BackwardCut::channels))
      conv_backward<E, BackwardCut, true><<<blocks_of(q), kThreads, 0, stream>>>(q);
    else
      conv_backward<E, BackwardCut, false><<<blocks_of(q), kThreads, 0, stream>>>(q);
    return cudaGetLastError();
  });
  if (status != cudaSuccess) return status;
  return sum_parts(q.parts, q.count, 5 * p.channels, d_weight, 4 * p.channels, d_bias, stream);
}

}  // namespace sb::cuda
