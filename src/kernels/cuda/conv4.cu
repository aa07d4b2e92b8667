// A thread walks a stretch of time with a few channels, the last three inputs in registers, and reads the next steps
// while it works. Backward it carries the last three gradients of z too: dx_{t-3} is complete when that of z_t is
// known.
#include "kernels/cuda/conv4.h"

#include <type_traits>

#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

// How a pass cuts its work: channels of a thread, steps of its walk, steps read together, blocks of a multiprocessor
template <int Channels, int Stretch, int Ahead, int Blocks>
struct Cut {
  static constexpr int channels = Channels, stretch = Stretch, ahead = Ahead, blocks = Blocks;
};
using ForwardCut = Cut<2, 48, 8, 4>;
using BackwardCut = Cut<2, 45, 8, 2>;

// W channels as they are read
template <class E, int W>
struct alignas(W * sizeof(E)) Few {
  E v[W];
  __device__ float operator[](int i) const { return to_float(v[i]); }
};
template <int W>
struct Floats {
  float v[W];
};

template <bool vectors, class E, int W>
__device__ __forceinline__ void load_few(Few<E, W>& few, const E* p, int left) {
  if constexpr (vectors) {
    few = *reinterpret_cast<const Few<E, W>*>(p);
  } else {
#pragma unroll
    for (int i = 0; i < W; ++i) few.v[i] = i < left ? p[i] : E(0.f);
  }
}
template <bool vectors, class E, int W>
__device__ __forceinline__ void store_few(E* p, const Floats<W>& x, int left) {
  Few<E, W> few;
#pragma unroll
  for (int i = 0; i < W; ++i) few.v[i] = from_float<E>(x.v[i]);
  if constexpr (vectors) {
    *reinterpret_cast<Few<E, W>*>(p) = few;
  } else {
#pragma unroll
    for (int i = 0; i < W; ++i)
      if (i < left) p[i] = few.v[i];
  }
}

struct ConvRows {
  Conv4 p;
  Frames<const void> gy;
  Frames<void> y, dx;
  void* d_tail;
  float* parts;
  int few, stretch, stretches;  // of a row's channels; steps; of a sequence
  int count;                    // stretches (forward) or parts (backward)
};

// A thread's channels and their weights
template <class E, int W, bool vectors>
struct Walk {
  const ConvRows& q;
  int channel, left, batch = 0, begin = 0, end = 0;
  float w[W][4], b[W];
  __device__ Walk(const ConvRows& rows, int few) : q(rows), channel(few * W), left(rows.p.channels - channel) {
#pragma unroll
    for (int i = 0; i < W; ++i) {
      const int c = min(channel + i, q.p.channels - 1);
#pragma unroll
      for (int k = 0; k < 4; ++k) w[i][k] = q.p.weight[c * 4 + k];
      b[i] = q.p.bias ? q.p.bias[c] : 0.f;
    }
  }
  __device__ void start(int stretch) {
    batch = stretch / q.stretches;
    begin = (stretch - batch * q.stretches) * q.stretch;
    end = min(begin + q.stretch, q.p.time);
  }
  // Step `begin` of the stretch
  template <class Void>
  __device__ auto row(const Frames<Void>& f) const {
    using Of = std::conditional_t<std::is_const_v<Void>, const E, E>;
    return static_cast<Of*>(f.data) + batch * f.batch + begin * f.time + channel;
  }
  __device__ E* tail(const void* memory, int t) const {
    return static_cast<E*>(const_cast<void*>(memory)) + (static_cast<int64_t>(batch) * 3 + t + 3) * q.p.channels +
           channel;
  }
  // The three steps before the stretch
  __device__ void past(Floats<W>* x) const {
    const E* const here = row(q.p.x);
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const int t = begin - 3 + i;
      Few<E, W> few{};
      if (t >= 0)
        load_few<vectors>(few, here + (i - 3) * static_cast<int>(q.p.x.time), left);
      else if (q.p.tail)
        load_few<false>(few, static_cast<const E*>(tail(q.p.tail, t)), left);
#pragma unroll
      for (int c = 0; c < W; ++c) x[i].v[c] = few[c];
    }
  }
  __device__ float z(int c, const Floats<W>* x) const {
    return b[c] + w[c][0] * x[0].v[c] + w[c][1] * x[1].v[c] + w[c][2] * x[2].v[c] + w[c][3] * x[3].v[c];
  }
};

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
    // Three steps more than the stretch has, as far as there are any: they complete its last dx.
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

// Enough threads to fill the card, each with as many stretches as any other
int parts_of(const ConvRows& q) {
  constexpr int wanted = 132 * BackwardCut::blocks * kThreads;
  const int stretches = std::max(1, q.p.batch * q.stretches);
  const int most = std::max(1, std::min(kMostParts, wanted / q.few)), rounds = (stretches + most - 1) / most;
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

}  // namespace

cudaError_t conv4_forward(const Conv4& p, const Frames<void>& y, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  if (p.batch == 0 || p.time == 0) return cudaSuccess;
  ConvRows q = rows_of<ForwardCut>(p);
  q.y = y;
  q.count = p.batch * q.stretches;
  return with_element(p.element, [&]<class E>() {
    if (vectors<E>(q, ForwardCut::channels))
      conv_forward<E, ForwardCut, true><<<blocks_of(q), kThreads, 0, stream>>>(q);
    else
      conv_forward<E, ForwardCut, false><<<blocks_of(q), kThreads, 0, stream>>>(q);
    return cudaGetLastError();
  });
}

size_t conv4_scratch_bytes(const Conv4& p) {
  return sizeof(float) * 5 * static_cast<size_t>(p.channels) * parts_of(rows_of<BackwardCut>(p));
}

cudaError_t conv4_backward(const Conv4& p, const Frames<const void>& gy, const Frames<void>& dx, float* d_weight,
                           float* d_bias, void* d_tail, void* scratch, cudaStream_t stream) {
  if (!valid(p) || p.batch == 0 || p.time == 0) return cudaErrorInvalidValue;
  ConvRows q = rows_of<BackwardCut>(p);
  q.gy = gy, q.dx = dx, q.d_tail = d_tail;
  q.parts = static_cast<float*>(scratch);
  q.count = parts_of(q);
  const cudaError_t status = with_element(p.element, [&]<class E>() {
    if (vectors<E>(q, BackwardCut::channels))
      conv_backward<E, BackwardCut, true><<<blocks_of(q), kThreads, 0, stream>>>(q);
    else
      conv_backward<E, BackwardCut, false><<<blocks_of(q), kThreads, 0, stream>>>(q);
    return cudaGetLastError();
  });
  if (status != cudaSuccess) return status;
  return sum_parts(q.parts, q.count, 5 * p.channels, d_weight, 4 * p.channels, d_bias, stream);
}

}  // namespace sb::cuda
