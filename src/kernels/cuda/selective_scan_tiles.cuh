// What the passes of the selective scan share. A thread holds 4 channels x NT states; NL lanes of a warp lie along the
// states, the others along channels; a block has 8 warps, all of one sequence. Time goes by chunks of L steps whose
// inputs lie in shared memory.
#pragma once
#include <cuda_bf16.h>

#include "kernels/cuda/selective_scan.h"

namespace sb::cuda::scan {

inline constexpr int kThreads = 256, kWarps = 8, CT = 4;

// Of a thread's 16 exponentials a step so many by polynomial: the special-function unit alone would hold the pass up.
#ifndef SB_SCAN_POLYNOMIALS
#define SB_SCAN_POLYNOMIALS 0
#endif
#ifndef SB_SCAN_L
#define SB_SCAN_L 16
#endif
inline constexpr int kPolynomials = SB_SCAN_POLYNOMIALS;

struct Sizes {
  int batch, time, channels, states;
  int chunks, groups;  // of L steps, of a block's channels
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

template <class E_, int NL_, int NT_, bool bounded_>
struct Shape {
  using E = E_;
  static constexpr int NL = NL_, NT = NT_, CL = 32 / NL;
  static constexpr bool bounded = bounded_;
  static constexpr int channels = kWarps * CL * CT, states = NL * NT;
  static constexpr int L = sizeof(E) == 2 ? SB_SCAN_L / (NT / 4) : 8 / (NT / 4);
  // 16-byte parts that hold a thread's states in the operands' type
  static constexpr int parts = CT * NT * static_cast<int>(sizeof(E)) / 16;
};

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
template <class E>
__device__ inline E from_float(float x) {
  if constexpr (sizeof(E) == 2)
    return __float2bfloat16_rn(x);
  else
    return x;
}

// A thread's states, packed to the operands' type: part i of 16 bytes.
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

// 2^x for x <= 0 by the special-function unit, or by a polynomial on the units of fused products.
__device__ inline float exp2_special(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float exp2_polynomial(float x) {
  constexpr float round = 12582912.f;  // 1.5 * 2^23
  x = fmaxf(x, -126.f);
  const float whole = x + round, f = x - (whole - round);
  float y = 1.338130254e-03f;
  y = fmaf(y, f, 9.666368515e-03f);
  y = fmaf(y, f, 5.550381014e-02f);
  y = fmaf(y, f, 2.402234904e-01f);
  y = fmaf(y, f, 6.931471806e-01f);
  y = fmaf(y, f, 1.f);
  return __int_as_float(__float_as_int(y) + (__float_as_int(whole) << 23));
}

// The sums of x[0..3] over the NL lanes along the states; a lane gets the sum of x[channel_of(lane)].
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

// Where a thread stands: its sequence, its first channel and state inside the block's.
template <class S>
struct Place {
  int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  int along = lane % S::NL;  // the states
  int channel = (warp * S::CL + lane / S::NL) * CT, state = along * S::NT;
};

// Decay rates in base 2: a = 2^(delta rate), rate = -e^{A_log} log2(e); zero outside the matrix.
template <class S>
__device__ inline void read_rates(float (&rate)[CT][S::NT], const SelectiveScan& p, const Sizes& z, int first_channel,
                                  const Place<S>& at) {
#pragma unroll
  for (int i = 0; i < CT; ++i)
#pragma unroll
    for (int j = 0; j < S::NT; ++j) {
      const int c = first_channel + at.channel + i, n = at.state + j;
      rate[i][j] =
          c < z.channels && n < z.states ? -expf(p.A_log[static_cast<int64_t>(c) * z.states + n]) * 1.442695041f : 0.f;
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

// put(step, column, value) for L steps of `width` columns from `first` of `end`; zeros outside.
template <int L, int Width, class E, class Put>
__device__ inline void read_steps(const ScanRows<E>& rows, int b, int begin, int steps, int first, int end,
                                  const Put& put) {
  const auto* data = rows.data + b * rows.batch + begin * rows.time + first;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < L * Width; i += kThreads) {
    const int t = i / Width, c = i % Width;
    put(t, c, t < steps && first + c < end ? to_float(data[t * rows.time + c]) : 0.f);
  }
}
template <class E>
__device__ inline ScanRows<const E> typed(const ScanRows<const void>& rows) {
  return {static_cast<const E*>(rows.data), rows.batch, rows.time};
}

template <class S>
__device__ inline uint4* kept_states(void* kept, const Sizes& z, int b, int group, int chunk) {
  return static_cast<uint4*>(kept) +
         (((static_cast<int64_t>(b) * z.groups + group) * z.chunks + chunk) * S::parts) * kThreads;
}

template <class Arguments>
cudaError_t launch(void (*kernel)(Arguments), const Sizes& z, size_t shared, const Arguments& arguments,
                   cudaStream_t stream) {
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (status != cudaSuccess) return status;
  kernel<<<dim3(static_cast<unsigned>(z.groups), static_cast<unsigned>(z.batch)), kThreads, shared, stream>>>(
      arguments);
  return cudaGetLastError();
}

// body(Shape) for the lanes and states a thread that N needs
template <class E, bool bounded, class Body>
auto with_states(int64_t N, const Body& body) {
  if (N <= 16) return body(Shape<E, 4, 4, bounded>{});
  if (N <= 32) return body(Shape<E, 8, 4, bounded>{});
  if (N <= 64) return body(Shape<E, 16, 4, bounded>{});
  if (N <= 128) return body(Shape<E, 32, 4, bounded>{});
  return body(Shape<E, 32, 8, bounded>{});
}
template <class Body>
auto with_shape(const SelectiveScan& p, const Body& body) {
  if (p.bf16)
    return p.a_min > 0 ? with_states<__nv_bfloat16, true>(p.states, body)
                       : with_states<__nv_bfloat16, false>(p.states, body);
  return p.a_min > 0 ? with_states<float, true>(p.states, body) : with_states<float, false>(p.states, body);
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

cudaError_t backward(const BackwardArguments& a, cudaStream_t stream);
cudaError_t forward(const ForwardArguments& a, cudaStream_t stream);

}  // namespace sb::cuda::scan
