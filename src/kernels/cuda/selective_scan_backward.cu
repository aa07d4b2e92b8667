// Gradients of the selective scan, walking back over chunks of L steps. From the kept state a chunk's decayed states
// a_t h_{t-1} are made again and held in shared memory; then, with gh the gradient of h_t,
//   gh += gy C;  dC = sum_c gy h;  dB = sum_c gh w x;  s = sum_n gh B;  ge = gh a h_{t-1};  gh <- gh a
//   dx = w s + gy skip;  dw = x s;  d delta = -sum_n ge e^{A_log};  dA_log = -sum_t ge delta e^{A_log}
// Sums over channels: over a thread's, a warp's and a block's, then over blocks, in this order.
#include "kernels/cuda/selective_scan_tiles.cuh"

namespace sb::cuda::scan {
namespace {

template <class S>
struct Memory {
  uint4 decayed[S::L][kWarps][S::parts][32];  // as packed; then, for each warp, its sums of dB and dC
  float B[S::L][S::states], C[S::L][S::states];
  float delta[S::L][S::channels], written[S::L][S::channels], gy[S::L][S::channels];
  float by_write[S::L][S::channels], by_rate[S::L][S::channels];
  float skip[kThreads];
};
template <class S>
constexpr bool kFitsTwice = sizeof(Memory<S>) <= 112 * 1024 && S::NT == 4;

// dB and dC of a warp's channels for one step to shared memory [2][states].
template <class S>
__device__ inline void put_sums(float (&dB)[S::NT], float (&dC)[S::NT], float* to, const Place<S>& at) {
  if constexpr (S::CL == 1) {
#pragma unroll
    for (int j = 0; j < S::NT; j += 4) {
      *reinterpret_cast<float4*>(to + at.state + j) = {dB[j], dB[j + 1], dB[j + 2], dB[j + 3]};
      *reinterpret_cast<float4*>(to + S::states + at.state + j) = {dC[j], dC[j + 1], dC[j + 2], dC[j + 3]};
    }
  } else {
    const bool second = at.lane & S::NL;  // which keeps dC
#pragma unroll
    for (int j = 0; j < S::NT; ++j) {
      float x = second ? dC[j] : dB[j];
      x += __shfl_xor_sync(~0u, second ? dB[j] : dC[j], S::NL);
#pragma unroll
      for (int by = 2 * S::NL; by < 32; by *= 2) x += __shfl_xor_sync(~0u, x, by);
      dB[j] = x;
    }
    if (at.lane < 2 * S::NL)
      *reinterpret_cast<float4*>(to + (second ? S::states : 0) + at.state) = {dB[0], dB[1], dB[2], dB[3]};
  }
}

template <class S>
__global__ void __launch_bounds__(kThreads, kFitsTwice<S> ? 2 : 1)
    scan_backward(const __grid_constant__ BackwardArguments a) {
  using E = typename S::E;
  extern __shared__ __align__(16) unsigned char bytes[];
  Memory<S>& m = *reinterpret_cast<Memory<S>*>(bytes);
  const Place<S> at;
  const Sizes& z = a.z;
  const int b = static_cast<int>(blockIdx.y), group = static_cast<int>(blockIdx.x), c0 = group * S::channels;
  const ScanRows<const float>& write = a.p.write.data ? a.p.write : a.p.delta;
  const ScanRows<const E> x = typed<E>(a.p.x);
  float gh[CT][S::NT], rate[CT][S::NT], d_rate[CT][S::NT] = {};
  float d_skip = 0;  // of channel thread % channels, of some of the steps
  read_rates<S>(rate, a.p, z, c0, at);
  read_state<S>(gh, a.d.d_final_state, z, b, c0, at);

  for (int chunk = z.chunks - 1; chunk >= 0; --chunk) {
    const int begin = chunk * S::L, steps = min(S::L, z.time - begin);
    float h[CT][S::NT];
    {
      const uint4* kept = kept_states<S>(const_cast<void*>(a.kept), z, b, group, chunk);
#pragma unroll
      for (int i = 0; i < S::parts; ++i) unpack<S>(h, i, kept[i * kThreads + at.thread]);
    }
    read_steps<S::L, S::states>(typed<E>(a.p.B), b, begin, steps, 0, z.states,
                                [&](int t, int n, float v) { m.B[t][n] = v; });
    read_steps<S::L, S::states>(typed<E>(a.p.C), b, begin, steps, 0, z.states,
                                [&](int t, int n, float v) { m.C[t][n] = v; });
    read_steps<S::L, S::channels>(x, b, begin, steps, c0, z.channels,
                                  [&](int t, int c, float v) { m.written[t][c] = v; });
    read_steps<S::L, S::channels>(a.p.delta, b, begin, steps, c0, z.channels,
                                  [&](int t, int c, float v) { m.delta[t][c] = v; });
    read_steps<S::L, S::channels>(write, b, begin, steps, c0, z.channels,
                                  [&](int t, int c, float v) { m.written[t][c] *= v; });
    read_steps<S::L, S::channels>(typed<E>(a.d.d_out), b, begin, steps, c0, z.channels,
                                  [&](int t, int c, float v) { m.gy[t][c] = v; });
    __syncthreads();

#pragma unroll 2
    for (int t = 0; t < steps; ++t) {
      const float4 d4 = *reinterpret_cast<const float4*>(&m.delta[t][at.channel]);
      const float4 u4 = *reinterpret_cast<const float4*>(&m.written[t][at.channel]);
      const float d[CT] = {d4.x, d4.y, d4.z, d4.w}, u[CT] = {u4.x, u4.y, u4.z, u4.w};
      float decayed[CT][S::NT];
#pragma unroll
      for (int j0 = 0; j0 < S::NT; j0 += 4) {
        const float4 B4 = *reinterpret_cast<const float4*>(&m.B[t][at.state + j0]);
        const float B[4] = {B4.x, B4.y, B4.z, B4.w};
#pragma unroll
        for (int i = 0; i < CT; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const float e = d[i] * rate[i][j0 + j];
            float factor = i < kPolynomials && j == 3 ? exp2_polynomial(e) : exp2_special(e);
            if constexpr (S::bounded) factor = fmaxf(factor, a.p.a_min);
            decayed[i][j0 + j] = factor * h[i][j0 + j];
            h[i][j0 + j] = fmaf(u[i], B[j], decayed[i][j0 + j]);
          }
      }
#pragma unroll
      for (int i = 0; i < S::parts; ++i) m.decayed[t][at.warp][i][at.lane] = packed<S>(decayed, i);
    }

    for (int t = steps - 1; t >= 0; --t) {
      const float4 d4 = *reinterpret_cast<const float4*>(&m.delta[t][at.channel]);
      const float4 u4 = *reinterpret_cast<const float4*>(&m.written[t][at.channel]);
      const float4 g4 = *reinterpret_cast<const float4*>(&m.gy[t][at.channel]);
      const float d[CT] = {d4.x, d4.y, d4.z, d4.w}, u[CT] = {u4.x, u4.y, u4.z, u4.w};
      const float gy[CT] = {g4.x, g4.y, g4.z, g4.w};
      float decayed[CT][S::NT];
#pragma unroll
      for (int i = 0; i < S::parts; ++i) unpack<S>(decayed, i, m.decayed[t][at.warp][i][at.lane]);
      float dB[S::NT] = {}, dC[S::NT] = {}, by_write[CT] = {}, by_rate[CT] = {};
#pragma unroll
      for (int j0 = 0; j0 < S::NT; j0 += 4) {
        const float4 B4 = *reinterpret_cast<const float4*>(&m.B[t][at.state + j0]);
        const float4 C4 = *reinterpret_cast<const float4*>(&m.C[t][at.state + j0]);
        const float B[4] = {B4.x, B4.y, B4.z, B4.w}, C[4] = {C4.x, C4.y, C4.z, C4.w};
#pragma unroll
        for (int i = 0; i < CT; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const int n = j0 + j;
            const float e = d[i] * rate[i][n];
            float factor = i < kPolynomials && j == 3 ? exp2_polynomial(e) : exp2_special(e);
            const float g = fmaf(gy[i], C[j], gh[i][n]);
            dC[n] = fmaf(gy[i], fmaf(u[i], B[j], decayed[i][n]), dC[n]);
            dB[n] = fmaf(g, u[i], dB[n]);
            by_write[i] = fmaf(g, B[j], by_write[i]);
            float ge = g * decayed[i][n];
            if constexpr (S::bounded) {
              if (factor <= a.p.a_min) ge = 0;
              factor = fmaxf(factor, a.p.a_min);
            }
            by_rate[i] = fmaf(ge, rate[i][n], by_rate[i]);
            d_rate[i][n] = fmaf(ge, d[i], d_rate[i][n]);
            gh[i][n] = g * factor;
          }
      }
      const float s = sum_states<S::NL>(by_write, at.lane), r = sum_states<S::NL>(by_rate, at.lane);
      if (at.along < CT) {
        m.by_write[t][at.channel + channel_of(at.lane)] = s;
        m.by_rate[t][at.channel + channel_of(at.lane)] = r;
      }
      __syncwarp();
      put_sums<S>(dB, dC, reinterpret_cast<float*>(m.decayed[t][at.warp]), at);
    }
    __syncthreads();

    for (int i = at.thread; i < S::L * S::states; i += kThreads) {
      const int t = i / S::states, n = i % S::states;
      if (t >= steps || n >= z.states) continue;
      float dB = 0, dC = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        const float* sums = reinterpret_cast<const float*>(m.decayed[t][w]);
        dB += sums[n];
        dC += sums[S::states + n];
      }
      const int64_t to = ((static_cast<int64_t>(group) * z.batch + b) * z.time + begin + t) * z.states + n;
      a.dB[to] = dB;
      a.dC[to] = dC;
    }
    constexpr float ln2 = 0.693147181f;
    E* dx = static_cast<E*>(a.d.dx.data) + b * a.d.dx.batch + begin * a.d.dx.time + c0;
    float* d_delta = a.d.d_delta.data + b * a.d.d_delta.batch + begin * a.d.d_delta.time + c0;
    float* d_write =
        a.p.write.data ? a.d.d_write.data + b * a.d.d_write.batch + begin * a.d.d_write.time + c0 : nullptr;
#pragma unroll 4
    for (int i = at.thread; i < S::L * S::channels; i += kThreads) {
      const int t = i / S::channels, c = i % S::channels;
      if (t >= steps || c0 + c >= z.channels) continue;
      const float value = to_float(x.data[b * x.batch + (begin + t) * x.time + c0 + c]);
      const float w = write.data[b * write.batch + (begin + t) * write.time + c0 + c];
      const float s = m.by_write[t][c], gy = m.gy[t][c];
      dx[t * a.d.dx.time + c] = from_float<E>(fmaf(w, s, gy * a.p.skip[c0 + c]));
      const float by_delta = ln2 * m.by_rate[t][c];
      d_delta[t * a.d.d_delta.time + c] = d_write ? by_delta : fmaf(value, s, by_delta);
      if (d_write) d_write[t * a.d.d_write.time + c] = value * s;
      d_skip = fmaf(gy, value, d_skip);
    }
    // A thread reads of gy and of the sums only what it writes, or what is written after the next barrier.
  }
  if (a.d.d_initial_state) write_state<S>(gh, a.d.d_initial_state, z, b, c0, at);
#pragma unroll
  for (int i = 0; i < CT; ++i)
#pragma unroll
    for (int j = 0; j < S::NT; ++j) d_rate[i][j] *= 0.693147181f * rate[i][j];
  write_state<S>(d_rate, a.d_A_log, z, b, c0, at);
  m.skip[at.thread] = d_skip;
  __syncthreads();
  if (at.thread < S::channels && c0 + at.thread < z.channels) {
    float sum = 0;
    for (int i = at.thread; i < kThreads; i += S::channels) sum += m.skip[i];
    a.d_skip[static_cast<int64_t>(b) * z.channels + c0 + at.thread] = sum;
  }
}

}  // namespace

cudaError_t backward(const BackwardArguments& a, cudaStream_t stream) {
  return with_shape(a.p, [&](auto shape) {
    using S = decltype(shape);
    return launch(scan_backward<S>, a.z, sizeof(Memory<S>), a, stream);
  });
}

}  // namespace sb::cuda::scan
