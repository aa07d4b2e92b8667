// A thread walks a stretch of time with four channels, the last three inputs in registers. Backward it carries the last
// three gradients of z too: dx_{t-3} is complete when that of z_t is known.
#include "kernels/cuda/conv4.h"

#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

constexpr int kQuad = 4;      // channels of a thread
constexpr int kStretch = 40;  // steps of a thread's walk
constexpr int kAhead = 4;     // steps read together

struct Quad {
  float v[kQuad];
};

template <bool vectors>
__device__ __forceinline__ Quad load_quad(const bf16* p, int left) {
  if constexpr (vectors) {
    const uint2 x = *reinterpret_cast<const uint2*>(p);
    return {__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000u), __uint_as_float(x.y << 16),
            __uint_as_float(x.y & 0xffff0000u)};
  } else {
    Quad q;
#pragma unroll
    for (int i = 0; i < kQuad; ++i) q.v[i] = i < left ? to_float(p[i]) : 0.f;
    return q;
  }
}
template <bool vectors>
__device__ __forceinline__ Quad load_quad(const float* p, int left) {
  if constexpr (vectors) {
    const float4 x = *reinterpret_cast<const float4*>(p);
    return {x.x, x.y, x.z, x.w};
  } else {
    Quad q;
#pragma unroll
    for (int i = 0; i < kQuad; ++i) q.v[i] = i < left ? p[i] : 0.f;
    return q;
  }
}
template <bool vectors, class E>
__device__ __forceinline__ void store_quad(E* p, const Quad& q, int left) {
  if constexpr (!vectors) {
#pragma unroll
    for (int i = 0; i < kQuad; ++i)
      if (i < left) p[i] = from_float<E>(q.v[i]);
  } else if constexpr (sizeof(E) == 2) {
    *reinterpret_cast<uint2*>(p) = make_uint2(pair_bits(q.v[0], q.v[1]), pair_bits(q.v[2], q.v[3]));
  } else {
    *reinterpret_cast<float4*>(p) = make_float4(q.v[0], q.v[1], q.v[2], q.v[3]);
  }
}

struct ConvRows {
  Conv4 p;
  Frames<const void> gy;
  Frames<void> y, dx;
  void* d_tail;
  float* parts;
  int quads, stretches, count;  // of a row's channels; of a sequence; threads (forward) or parts (backward)
};

// A thread's four channels and their weights
template <class E, bool vectors>
struct Walk {
  const ConvRows& q;
  int channel, left, batch = 0, begin = 0, end = 0;
  float w[kQuad][4], b[kQuad];
  __device__ Walk(const ConvRows& rows, int quad) : q(rows), channel(quad * kQuad), left(rows.p.channels - channel) {
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      const int c = min(channel + i, q.p.channels - 1);
#pragma unroll
      for (int k = 0; k < 4; ++k) w[i][k] = q.p.weight[c * 4 + k];
      b[i] = q.p.bias ? q.p.bias[c] : 0.f;
    }
  }
  __device__ void start(int stretch) {
    batch = stretch / q.stretches;
    begin = (stretch - batch * q.stretches) * kStretch;
    end = min(begin + kStretch, q.p.time);
  }
  __device__ Quad x(int t) const {
    if (t >= 0)
      return load_quad<vectors>(static_cast<const E*>(q.p.x.data) + batch * q.p.x.batch + t * q.p.x.time + channel,
                                left);
    if (!q.p.tail) return {};
    return load_quad<false>(
        static_cast<const E*>(q.p.tail) + (static_cast<int64_t>(batch) * 3 + t + 3) * q.p.channels + channel, left);
  }
  __device__ float z(int i, const Quad& x0, const Quad& x1, const Quad& x2, const Quad& x3) const {
    return b[i] + w[i][0] * x0.v[i] + w[i][1] * x1.v[i] + w[i][2] * x2.v[i] + w[i][3] * x3.v[i];
  }
};

template <class E, bool vectors>
__global__ void __launch_bounds__(kThreads) conv_forward(const __grid_constant__ ConvRows q) {
  const int64_t id = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int stretch = static_cast<int>(id / q.quads);
  if (stretch >= q.count) return;
  Walk<E, vectors> walk(q, static_cast<int>(id - static_cast<int64_t>(stretch) * q.quads));
  walk.start(stretch);
  const auto step = [&](const Quad& x0, const Quad& x1, const Quad& x2, const Quad& x3, int t) {
    Quad y;
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      y.v[i] = walk.z(i, x0, x1, x2, x3);
      if (q.p.silu) y.v[i] *= sigmoid(y.v[i]);
    }
    store_quad<vectors>(static_cast<E*>(q.y.data) + walk.batch * q.y.batch + t * q.y.time + walk.channel, y, walk.left);
  };
  Quad x[kAhead + 3];
#pragma unroll
  for (int i = 0; i < 3; ++i) x[i] = walk.x(walk.begin - 3 + i);
  int t = walk.begin;
  for (; t + kAhead <= walk.end; t += kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) x[3 + i] = walk.x(t + i);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) step(x[i], x[i + 1], x[i + 2], x[i + 3], t + i);
#pragma unroll
    for (int i = 0; i < 3; ++i) x[i] = x[kAhead + i];
  }
  for (; t < walk.end; ++t) {
    x[3] = walk.x(t);
    step(x[0], x[1], x[2], x[3], t);
    x[0] = x[1], x[1] = x[2], x[2] = x[3];
  }
}

template <class E, bool vectors>
__global__ void __launch_bounds__(kThreads) conv_backward(const __grid_constant__ ConvRows q) {
  const int64_t id = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int part = static_cast<int>(id / q.quads);
  if (part >= q.count) return;
  Walk<E, vectors> walk(q, static_cast<int>(id - static_cast<int64_t>(part) * q.quads));
  float dw[kQuad][4] = {}, db[kQuad] = {};
  for (int stretch = part; stretch < q.p.batch * q.stretches; stretch += q.count) {
    walk.start(stretch);
    Quad x[kAhead + 3], g[kAhead + 3] = {};  // inputs and gradients of z, the last three first
    const E* const gy = static_cast<const E*>(q.gy.data) + walk.batch * q.gy.batch + walk.channel;
    E* const dx = static_cast<E*>(q.dx.data) + walk.batch * q.dx.batch + walk.channel;
#pragma unroll
    for (int i = 0; i < 3; ++i) x[i] = walk.x(walk.begin - 3 + i);
    for (int t = walk.begin; t < walk.end + 3; t += kAhead) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const bool here = t + i < q.p.time && t + i < walk.end + 3;
        x[3 + i] = here ? walk.x(t + i) : Quad{};
        g[3 + i] = here ? load_quad<vectors>(gy + (t + i) * q.gy.time, walk.left) : Quad{};
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
#pragma unroll
        for (int c = 0; c < kQuad; ++c) {
          float& gz = g[3 + i].v[c];
          if (q.p.silu) {
            const float z = walk.z(c, x[i], x[i + 1], x[i + 2], x[i + 3]);
            gz *= silu_slope(z, sigmoid(z));
          }
          const float counted = t + i < walk.end ? gz : 0.f;  // the stretch after this one counts the others
#pragma unroll
          for (int k = 0; k < 4; ++k) dw[c][k] += counted * x[i + k].v[c];
          db[c] += counted;
        }
        const int to = t + i - 3;
        const bool before = to < 0 && walk.begin == 0 && q.d_tail;
        if (to >= walk.end || (to < walk.begin && !before)) continue;
        Quad d;
#pragma unroll
        for (int c = 0; c < kQuad; ++c)
          d.v[c] = walk.w[c][3] * g[i].v[c] + walk.w[c][2] * g[i + 1].v[c] + walk.w[c][1] * g[i + 2].v[c] +
                   walk.w[c][0] * g[i + 3].v[c];
        if (!before) {
          store_quad<vectors>(dx + to * q.dx.time, d, walk.left);
        } else {
          store_quad<false>(
              static_cast<E*>(q.d_tail) + (static_cast<int64_t>(walk.batch) * 3 + to + 3) * q.p.channels + walk.channel,
              d, walk.left);
        }
      }
#pragma unroll
      for (int i = 0; i < 3; ++i) x[i] = x[kAhead + i], g[i] = g[kAhead + i];
    }
  }
  float* const sums = q.parts + static_cast<int64_t>(part) * 5 * q.p.channels;
#pragma unroll
  for (int c = 0; c < kQuad; ++c) {
    if (c >= walk.left) break;
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[(walk.channel + c) * 4 + k] = dw[c][k];
    sums[4 * q.p.channels + walk.channel + c] = db[c];
  }
}

bool valid(const Conv4& p) {
  return p.batch >= 0 && p.time >= 0 && p.channels > 0 && p.weight && p.x.data;
}

ConvRows rows_of(const Conv4& p) {
  ConvRows q{p};
  q.quads = (p.channels + kQuad - 1) / kQuad;
  q.stretches = (p.time + kStretch - 1) / kStretch;
  return q;
}

// Enough threads to fill the card twice over, and no more parts than stretches
int parts_of(const ConvRows& q) {
  constexpr int wanted = 132 * 1024;
  return std::max(1, std::min({q.p.batch * q.stretches, kMostParts, (wanted + q.quads - 1) / q.quads}));
}

template <class E>
bool vectors(const ConvRows& q) {
  const auto fits = [](const auto& f) {
    const size_t piece = kQuad * sizeof(E);
    return reinterpret_cast<uintptr_t>(f.data) % piece == 0 && f.batch % kQuad == 0 && f.time % kQuad == 0;
  };
  return q.p.channels % kQuad == 0 && fits(q.p.x) && fits(q.y) && fits(q.gy) && fits(q.dx);
}

}  // namespace

cudaError_t conv4_forward(const Conv4& p, const Frames<void>& y, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  if (p.batch == 0 || p.time == 0) return cudaSuccess;
  ConvRows q = rows_of(p);
  q.y = y;
  q.count = p.batch * q.stretches;
  const auto blocks = static_cast<unsigned>((static_cast<int64_t>(q.count) * q.quads + kThreads - 1) / kThreads);
  return with_element(p.element, [&]<class E>() {
    if (vectors<E>(q))
      conv_forward<E, true><<<blocks, kThreads, 0, stream>>>(q);
    else
      conv_forward<E, false><<<blocks, kThreads, 0, stream>>>(q);
    return cudaGetLastError();
  });
}

size_t conv4_scratch_bytes(const Conv4& p) {
  return sizeof(float) * 5 * static_cast<size_t>(p.channels) * parts_of(rows_of(p));
}

cudaError_t conv4_backward(const Conv4& p, const Frames<const void>& gy, const Frames<void>& dx, float* d_weight,
                           float* d_bias, void* d_tail, void* scratch, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  if (p.batch == 0 || p.time == 0) return cudaErrorInvalidValue;
  ConvRows q = rows_of(p);
  q.gy = gy, q.dx = dx, q.d_tail = d_tail;
  q.parts = static_cast<float*>(scratch);
  q.count = parts_of(q);
  const auto blocks = static_cast<unsigned>((static_cast<int64_t>(q.count) * q.quads + kThreads - 1) / kThreads);
  const cudaError_t status = with_element(p.element, [&]<class E>() {
    if (vectors<E>(q))
      conv_backward<E, true><<<blocks, kThreads, 0, stream>>>(q);
    else
      conv_backward<E, false><<<blocks, kThreads, 0, stream>>>(q);
    return cudaGetLastError();
  });
  if (status != cudaSuccess) return status;
  return sum_parts(q.parts, q.count, 5 * p.channels, d_weight, 4 * p.channels, d_bias, stream);
}

}  // namespace sb::cuda
