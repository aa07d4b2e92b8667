// Shared parts of the selective-scan kernels. A thread holds 4 channels x NT states. NL lanes of a warp are distributed
// along the states, the others along the channels. A block has 8 warps, all for the same sequence. Time is divided into
// chunks of L steps, whose initial states can be kept. Shared memory holds the inputs of up to 16 steps at a time.
#pragma once
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/selective_scan.h"

namespace sb::cuda::scan {

inline constexpr int kThreads = 256, kWarps = 8, CT = 4;

struct Sizes {
  int batch, time, channels, states;
  int chunks, groups;  // chunks of L steps; groups of channels, one block each
};
struct ForwardArguments {
  SelectiveScan p;
  Sizes z;
  ScanRows<void> out;  // data null: states only
  float* final_state;
  void* kept;
};
struct BackwardArguments {
  SelectiveScan p;
  Sizes z;
  SelectiveScanGradients d;
  const void* kept;
  float *dB, *dC;           // [groups,B,T,N]
  float *d_A_log, *d_skip;  // [B,D,N], [B,D]
};

// One sequence, whose segments take the place of the batch
struct SegmentArguments {
  SelectiveScan p;
  Sizes z;
  ScanRows<const void> d_out;  // backward only
  float *states, *decays;      // [segments,D,N]
};

template <class E_, int NL_, int NT_, bool bounded_>
struct Shape {
  using E = E_;
  static constexpr int NL = NL_, NT = NT_, CL = 32 / NL;
  static constexpr bool bounded = bounded_;
  static constexpr int channels = kWarps * CL * CT, states = NL * NT;
  static constexpr int L = 8 / (NT / 4);                            // steps between kept states
  static constexpr int stage = sizeof(E) == 4 && NL == 4 ? 8 : 16;  // steps whose inputs are in shared memory at once
  // number of 16-byte parts for a thread's states in the operands' type
  static constexpr int parts = CT * NT * static_cast<int>(sizeof(E)) / 16;
};

// Part i (16 bytes) of a thread's states, converted to the operands' type.
template <class S>
__device__ inline uint4 packed(const float (&h)[CT][S::NT], int i) {
  uint4 x;
  if constexpr (sizeof(typename S::E) == 2) {
    __nv_bfloat162* e = reinterpret_cast<__nv_bfloat162*>(&x);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int k = i * 8 + 2 * j;
      e[j] = __floats2bfloat162_rn(h[k / S::NT][k % S::NT], h[k / S::NT][k % S::NT + 1]);
    }
  } else {
    float* e = reinterpret_cast<float*>(&x);
#pragma unroll
    for (int j = 0; j < 4; ++j) e[j] = h[(i * 4 + j) / S::NT][(i * 4 + j) % S::NT];
  }
  return x;
}
template <class S>
__device__ inline void unpack(float (&h)[CT][S::NT], int i, const uint4& x) {
  if constexpr (sizeof(typename S::E) == 2) {
    const __nv_bfloat162* e = reinterpret_cast<const __nv_bfloat162*>(&x);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int k = i * 8 + 2 * j;
      const float2 y = __bfloat1622float2(e[j]);
      h[k / S::NT][k % S::NT] = y.x;
      h[k / S::NT][k % S::NT + 1] = y.y;
    }
  } else {
    const float* e = reinterpret_cast<const float*>(&x);
#pragma unroll
    for (int j = 0; j < 4; ++j) h[(i * 4 + j) / S::NT][(i * 4 + j) % S::NT] = e[j];
  }
}

// Sums x[0..3] over the NL lanes along the states. Each lane gets the sum of x[channel_of(lane)].
template <int NL>
__device__ inline float sum_states(const float (&x)[CT], int lane) {
  const bool odd = lane & 1, second = lane & 2;
  float a = odd ? x[2] : x[0], b = odd ? x[3] : x[1];
  a += __shfl_xor_sync(~0u, odd ? x[0] : x[2], 1);
  b += __shfl_xor_sync(~0u, odd ? x[1] : x[3], 1);
  float y = second ? b : a;
  y += __shfl_xor_sync(~0u, second ? a : b, 2);
#pragma unroll
  for (int by = 4; by < NL; by *= 2) y += __shfl_xor_sync(~0u, y, by);
  return y;
}
__device__ inline int channel_of(int lane) {
  return lane % 2 * 2 + lane / 2 % 2;
}

// Position of a thread: its warp and lane, and its first channel and state relative to the block's.
template <class S>
struct Place {
  int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  int along = lane % S::NL;  // index along the states
  int channel = (warp * S::CL + lane / S::NL) * CT, state = along * S::NT;
};

// Reads decay rates in base 2: a = 2^(delta rate), rate = -e^{A_log} log2(e); zero outside the matrix.
template <class S>
__device__ inline void read_rates(float (&rate)[CT][S::NT], const SelectiveScan& p, const Sizes& z, int first_channel,
                                  const Place<S>& at) {
#pragma unroll
  for (int i = 0; i < CT; ++i)
#pragma unroll
    for (int j = 0; j < S::NT; ++j) {
      const int c = first_channel + at.channel + i, n = at.state + j;
      rate[i][j] =
          c < z.channels && n < z.states ? -expf(p.A_log[static_cast<int64_t>(c) * z.states + n]) * kLog2EFloat : 0.f;
    }
}
template <class S>
__device__ inline void read_state(float (&h)[CT][S::NT], const float* from, const Sizes& z, int b, int first_channel,
                                  const Place<S>& at) {
#pragma unroll
  for (int i = 0; i < CT; ++i)
#pragma unroll
    for (int j = 0; j < S::NT; ++j) {
      const int c = first_channel + at.channel + i, n = at.state + j;
      h[i][j] = from && c < z.channels && n < z.states ? from[(static_cast<int64_t>(b) * z.channels + c) * z.states + n]
                                                       : 0.f;
    }
}
template <class S>
__device__ inline void write_state(const float (&h)[CT][S::NT], float* to, const Sizes& z, int b, int first_channel,
                                   const Place<S>& at) {
#pragma unroll
  for (int i = 0; i < CT; ++i)
#pragma unroll
    for (int j = 0; j < S::NT; ++j) {
      const int c = first_channel + at.channel + i, n = at.state + j;
      if (c < z.channels && n < z.states) to[(static_cast<int64_t>(b) * z.channels + c) * z.states + n] = h[i][j];
    }
}

// Four adjacent elements of a row.
template <class E>
struct Four;
template <>
struct Four<float> {
  float4 x;
  __device__ float4 values() const { return x; }
  __device__ void set(float4 v) { x = v; }
};
template <>
struct Four<__nv_bfloat16> {
  uint2 x;
  __device__ float4 values() const {
    const float2 a = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(x.x));
    const float2 b = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(x.y));
    return {a.x, a.y, b.x, b.y};
  }
  __device__ void set(float4 v) {
    reinterpret_cast<__nv_bfloat162&>(x.x) = __floats2bfloat162_rn(v.x, v.y);
    reinterpret_cast<__nv_bfloat162&>(x.y) = __floats2bfloat162_rn(v.z, v.w);
  }
};

// Columns first..end - 1 of the rows of sequence b from step `begin` on. `aligned`: in all rows, four elements can be
// accessed at once.
template <class E>
struct Window {
  E* data;
  int64_t stride;
  int columns;
  bool aligned;
  __device__ Window(const ScanRows<E>& rows, int b, int begin, int first, int end)
      : data(rows.data + b * rows.batch + begin * rows.time + first), stride(rows.time), columns(end - first) {
    aligned = reinterpret_cast<uintptr_t>(data) % (4 * sizeof(E)) == 0 && stride % 4 == 0;
  }
};

// A thread's share of a tile of S::stage steps x Width columns, in registers on the way to shared memory, as groups of
// four adjacent elements.
template <class S, class E, int Width>
struct Share {
  static constexpr int fours = S::stage * Width / 4, count = (fours + kThreads - 1) / kThreads;
  Four<E> x[count];
  // Calls body(index, step, column) for each group of four
  template <class Body>
  __device__ static void for_fours(const Body& body) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int at = i * kThreads + static_cast<int>(threadIdx.x);
      if (fours % kThreads == 0 || at < fours) body(i, at / (Width / 4), at % (Width / 4) * 4);
    }
  }
  __device__ void read(const Window<const E>& from, int steps) {
    for_fours([&](int i, int t, int c) {
      const E* p = from.data + t * from.stride + c;
      x[i] = {};
      if (t >= steps || c >= from.columns) return;
      if (from.aligned && c + 4 <= from.columns) {
        x[i].x = *reinterpret_cast<const decltype(x[i].x)*>(p);
      } else {
        x[i].set({to_float(p[0]), c + 1 < from.columns ? to_float(p[1]) : 0.f,
                  c + 2 < from.columns ? to_float(p[2]) : 0.f, c + 3 < from.columns ? to_float(p[3]) : 0.f});
      }
    });
  }
  __device__ void put(float (*tile)[Width]) const {
    for_fours([&](int i, int t, int c) { *reinterpret_cast<float4*>(&tile[t][c]) = x[i].values(); });
  }
};

template <class E>
__device__ inline void write_four(const Window<E>& to, int t, int c, float4 v) {
  E* p = to.data + t * to.stride + c;
  if (to.aligned && c + 4 <= to.columns) {
    Four<E> x;
    x.set(v);
    *reinterpret_cast<decltype(x.x)*>(p) = x.x;
    return;
  }
  const float all[4] = {v.x, v.y, v.z, v.w};
  for (int i = 0; i < 4; ++i)
    if (c + i < to.columns) p[i] = from_float<E>(all[i]);
}

__device__ inline float4 read_four(const float* p, int count) {
  return {p[0], count > 1 ? p[1] : 0.f, count > 2 ? p[2] : 0.f, count > 3 ? p[3] : 0.f};
}
__device__ inline float4 operator*(float4 a, float4 b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
}
__device__ inline float4 operator+(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
__device__ inline float4 operator*(float a, float4 b) {
  return {a * b.x, a * b.y, a * b.z, a * b.w};
}
__device__ inline const float4& four(const float* p) {
  return *reinterpret_cast<const float4*>(p);
}
__device__ inline float4& four(float* p) {
  return *reinterpret_cast<float4*>(p);
}

template <class E>
__device__ inline ScanRows<const E> typed(const ScanRows<const void>& rows) {
  return {static_cast<const E*>(rows.data), rows.batch, rows.time};
}
template <class E>
__device__ inline ScanRows<E> typed(const ScanRows<void>& rows) {
  return {static_cast<E*>(rows.data), rows.batch, rows.time};
}

template <class S>
__device__ inline uint4* kept_states(void* kept, const Sizes& z, int b, int group, int chunk) {
  return static_cast<uint4*>(kept) +
         (((static_cast<int64_t>(b) * z.groups + group) * z.chunks + chunk) * S::parts) * kThreads;
}

inline dim3 grid_of(const Sizes& z) {
  return {static_cast<unsigned>(z.groups), static_cast<unsigned>(z.batch)};
}

// Calls body(Shape) with the numbers of lanes and of states per thread of a padded number of states
inline constexpr int kPaddedStates[] = {16, 32, 64, 128, 256};
template <class E, bool bounded, class Body>
auto with_states(int padded, const Body& body) {
  if (padded == 16) return body(Shape<E, 4, 4, bounded>{});
  if (padded == 32) return body(Shape<E, 8, 4, bounded>{});
  if (padded == 64) return body(Shape<E, 16, 4, bounded>{});
  if (padded == 128) return body(Shape<E, 32, 4, bounded>{});
  return body(Shape<E, 32, 8, bounded>{});
}
template <class Body>
auto with_shape(const SelectiveScan& p, int padded, const Body& body) {
  if (p.bf16)
    return p.a_min > 0 ? with_states<__nv_bfloat16, true>(padded, body)
                       : with_states<__nv_bfloat16, false>(padded, body);
  return p.a_min > 0 ? with_states<float, true>(padded, body) : with_states<float, false>(padded, body);
}
template <class S>
Sizes sizes_of(const SelectiveScan& p, S) {
  return {static_cast<int>(p.batch),
          static_cast<int>(p.time),
          static_cast<int>(p.channels),
          static_cast<int>(p.states),
          static_cast<int>((p.time + S::L - 1) / S::L),
          static_cast<int>((p.channels + S::channels - 1) / S::channels)};
}

cudaError_t backward(const BackwardArguments& a, int padded, Target to);
cudaError_t forward(const ForwardArguments& a, int padded, Target to);
// Computes a.states: the initial state of each segment from that of the sequence (`first`, null: zeros), or, backward,
// the gradient of its final state from that of the sequence's.
cudaError_t join(const SegmentArguments& a, const float* first, bool backward, int padded, Target to);

}  // namespace sb::cuda::scan
