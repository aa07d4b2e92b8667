// Shared parts of the conv4 kernels: a thread processes a few channels and loops over time.
#pragma once
#include <type_traits>

#include "kernels/cuda/conv4.h"
#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

// W channels in the type in which they are read
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
  int few, stretch, stretches;  // groups of W channels per row; steps per stretch; stretches per sequence
  int count;                    // number of stretches (forward) or of parts (backward)
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
  // Address of step `begin`, the first of the stretch
  template <class Void>
  __device__ auto row(const Frames<Void>& f) const {
    using Of = std::conditional_t<std::is_const_v<Void>, const E, E>;
    return static_cast<Of*>(f.data) + batch * f.batch + begin * f.time + channel;
  }
  __device__ E* tail(const void* memory, int t) const {
    return static_cast<E*>(const_cast<void*>(memory)) + (static_cast<int64_t>(batch) * 3 + t + 3) * q.p.channels +
           channel;
  }
  // Reads the inputs of the three steps before the stretch
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

}  // namespace
}  // namespace sb::cuda
