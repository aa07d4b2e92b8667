// Gradients of the selective scan, in a backward loop over chunks of L steps. Recomputes a chunk's decayed states
// a_t h_{t-1} from the kept state and holds them in shared memory. Then, with gh the gradient of h_t:
//   gh += gy C;  dC = sum_c gy h;  dB = sum_c gh w x;  s = sum_n gh B;  ge = gh a h_{t-1};  gh <- gh a
//   dx = w s + gy skip;  dw = x s;  d delta = -sum_n ge e^{A_log};  dA_log = -sum_t ge delta e^{A_log}
// Sums over channels are made within a thread, a warp and a block, then over blocks, in this order.
#include "kernels/cuda/selective_scan_tiles.cuh"

namespace sb::cuda::scan {
namespace {

template <class S>
struct Memory {
  uint4 decayed[S::L][kWarps][S::parts][32];  // as packed; then, for each warp, its sums of dB and dC
  float B[S::stage][S::states], C[S::stage][S::states];
  float x[S::stage][S::channels], delta[S::stage][S::channels], write[S::stage][S::channels];
  float written[S::stage][S::channels], gy[S::stage][S::channels];
  float by_write[S::stage][S::channels], by_rate[S::stage][S::channels];
  float skip[kThreads][4];
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

// The inputs of a stage to shared memory, all reads before the first write.
template <class S>
__device__ inline void read_inputs(Memory<S>& m, const BackwardArguments& a, int b, int begin, int steps, int c0) {
  using E = typename S::E;
  Share<S, E, S::states> B, C;
  Share<S, E, S::channels> x, gy;
  Share<S, float, S::channels> delta, write;
  B.read({typed<E>(a.p.B), b, begin, 0, a.z.states}, steps);
  C.read({typed<E>(a.p.C), b, begin, 0, a.z.states}, steps);
  x.read({typed<E>(a.p.x), b, begin, c0, a.z.channels}, steps);
  gy.read({typed<E>(a.d.d_out), b, begin, c0, a.z.channels}, steps);
  delta.read({a.p.delta, b, begin, c0, a.z.channels}, steps);
  if (a.p.write.data)
    write.read({a.p.write, b, begin, c0, a.z.channels}, steps);
  else
    write = delta;
  B.put(m.B);
  C.put(m.C);
  x.put(m.x);
  gy.put(m.gy);
  delta.put(m.delta);
  write.put(m.write);
  Share<S, float, S::channels>::for_fours(
      [&](int i, int t, int c) { four(&m.written[t][c]) = x.x[i].values() * write.x[i].values(); });
}

// dx, d delta, d write of a stage and their share of d skip.
template <class S>
__device__ inline void write_gradients(const Memory<S>& m, const BackwardArguments& a, int b, int begin, int steps,
                                       int c0, float4& d_skip) {
  using E = typename S::E;
  constexpr float ln2 = 0.693147181f;
  const Window<E> dx(typed<E>(a.d.dx), b, begin, c0, a.z.channels);
  const Window<float> d_delta(a.d.d_delta, b, begin, c0, a.z.channels);
  Share<S, E, S::channels>::for_fours([&](int, int t, int c) {
    if (t >= steps || c >= dx.columns) return;
    const float4 skip = read_four(a.p.skip + c0 + c, dx.columns - c);
    const float4 s = four(&m.by_write[t][c]), gy = four(&m.gy[t][c]), x = four(&m.x[t][c]);
    write_four(dx, t, c, four(&m.write[t][c]) * s + gy * skip);
    const float4 by_delta = ln2 * four(&m.by_rate[t][c]);
    if (a.p.write.data) {
      write_four(Window<float>(a.d.d_write, b, begin, c0, a.z.channels), t, c, x * s);
      write_four(d_delta, t, c, by_delta);
    } else {
      write_four(d_delta, t, c, by_delta + x * s);
    }
    d_skip = d_skip + gy * x;
  });
}

// The warps' sums of dB and dC, added in their order.
template <class S>
__device__ inline void write_sums(const Memory<S>& m, const BackwardArguments& a, int b, int group, int begin,
                                  int steps) {
  constexpr int fours = 2 * S::states / 4;
  for (int i = static_cast<int>(threadIdx.x); i < S::L * fours; i += kThreads) {
    const int t = i / fours, n = i % fours * 4, column = n % S::states;
    if (t >= steps || column >= a.z.states) continue;
    float4 sum = four(reinterpret_cast<const float*>(m.decayed[t][0]) + n);
#pragma unroll
    for (int w = 1; w < kWarps; ++w) sum = sum + four(reinterpret_cast<const float*>(m.decayed[t][w]) + n);
    const ScanRows<float> rows{n < S::states ? a.dB : a.dC, static_cast<int64_t>(a.z.time) * a.z.states, a.z.states};
    write_four(Window<float>(rows, group * a.z.batch + b, begin, 0, a.z.states), t, column, sum);
  }
}

template <class S>
__global__ void __launch_bounds__(kThreads, kFitsTwice<S> ? 2 : 1)
    scan_backward(const __grid_constant__ BackwardArguments a) {
  extern __shared__ __align__(16) unsigned char bytes[];
  Memory<S>& m = *reinterpret_cast<Memory<S>*>(bytes);
  const Place<S> at;
  const Sizes& z = a.z;
  const int b = static_cast<int>(blockIdx.y), group = static_cast<int>(blockIdx.x), c0 = group * S::channels;
  float gh[CT][S::NT], rate[CT][S::NT], d_rate[CT][S::NT] = {};
  float4 d_skip = {};  // of four channels, of some of the steps
  read_rates<S>(rate, a.p, z, c0, at);
  read_state<S>(gh, a.d.d_final_state, z, b, c0, at);

  for (int begin = (z.time - 1) / S::stage * S::stage; begin >= 0; begin -= S::stage) {
    const int steps = min(S::stage, z.time - begin);
    read_inputs<S>(m, a, b, begin, steps, c0);
    __syncthreads();
#pragma unroll 1
    for (int part = (steps - 1) / S::L * S::L; part >= 0; part -= S::L) {
      const int count = min(S::L, steps - part);
      float h[CT][S::NT];
      const uint4* kept = kept_states<S>(const_cast<void*>(a.kept), z, b, group, (begin + part) / S::L);
#pragma unroll
      for (int i = 0; i < S::parts; ++i) unpack<S>(h, i, kept[i * kThreads + at.thread]);
#pragma unroll 2
      for (int step = 0; step < count; ++step) {
        const int t = part + step;
        const float4 d4 = four(&m.delta[t][at.channel]), u4 = four(&m.written[t][at.channel]);
        const float d[CT] = {d4.x, d4.y, d4.z, d4.w}, u[CT] = {u4.x, u4.y, u4.z, u4.w};
        float decayed[CT][S::NT];
#pragma unroll
        for (int j0 = 0; j0 < S::NT; j0 += 4) {
          const float4 B4 = four(&m.B[t][at.state + j0]);
          const float B[4] = {B4.x, B4.y, B4.z, B4.w};
#pragma unroll
          for (int i = 0; i < CT; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              float factor = exp2_fast(d[i] * rate[i][j0 + j]);
              if constexpr (S::bounded) factor = at_least(factor, a.p.a_min);
              decayed[i][j0 + j] = factor * h[i][j0 + j];
              h[i][j0 + j] = fmaf(u[i], B[j], decayed[i][j0 + j]);
            }
        }
#pragma unroll
        for (int i = 0; i < S::parts; ++i) m.decayed[step][at.warp][i][at.lane] = packed<S>(decayed, i);
      }

      for (int step = count - 1; step >= 0; --step) {
        const int t = part + step;
        const float4 d4 = four(&m.delta[t][at.channel]), u4 = four(&m.written[t][at.channel]);
        const float4 g4 = four(&m.gy[t][at.channel]);
        const float d[CT] = {d4.x, d4.y, d4.z, d4.w}, u[CT] = {u4.x, u4.y, u4.z, u4.w};
        const float gy[CT] = {g4.x, g4.y, g4.z, g4.w};
        float decayed[CT][S::NT];
#pragma unroll
        for (int i = 0; i < S::parts; ++i) unpack<S>(decayed, i, m.decayed[step][at.warp][i][at.lane]);
        float dB[S::NT] = {}, dC[S::NT] = {}, by_write[CT] = {}, by_rate[CT] = {};
        const float written_gy = gy[0] * u[0] + gy[1] * u[1] + gy[2] * u[2] + gy[3] * u[3];
#pragma unroll
        for (int j0 = 0; j0 < S::NT; j0 += 4) {
          const float4 B4 = four(&m.B[t][at.state + j0]), C4 = four(&m.C[t][at.state + j0]);
          const float B[4] = {B4.x, B4.y, B4.z, B4.w}, C[4] = {C4.x, C4.y, C4.z, C4.w};
#pragma unroll
          for (int i = 0; i < CT; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              const int n = j0 + j;
              float factor = exp2_fast(d[i] * rate[i][n]);
              const float g = fmaf(gy[i], C[j], gh[i][n]);
              dC[n] = fmaf(gy[i], decayed[i][n], dC[n]);
              dB[n] = fmaf(g, u[i], dB[n]);
              by_write[i] = fmaf(g, B[j], by_write[i]);
              float ge = g * decayed[i][n];
              if constexpr (S::bounded) {
                if (factor <= a.p.a_min) ge = 0;
                factor = at_least(factor, a.p.a_min);
              }
              by_rate[i] = fmaf(ge, rate[i][n], by_rate[i]);
              d_rate[i][n] = fmaf(ge, d[i], d_rate[i][n]);
              gh[i][n] = g * factor;
            }
#pragma unroll
          for (int j = 0; j < 4; ++j) dC[j0 + j] = fmaf(written_gy, B[j], dC[j0 + j]);  // h = decayed + w x B
        }
        const float s = sum_states<S::NL>(by_write, at.lane), r = sum_states<S::NL>(by_rate, at.lane);
        if (at.along < CT) {
          m.by_write[t][at.channel + channel_of(at.lane)] = s;
          m.by_rate[t][at.channel + channel_of(at.lane)] = r;
        }
        __syncwarp();
        put_sums<S>(dB, dC, reinterpret_cast<float*>(m.decayed[step][at.warp]), at);
      }
      __syncthreads();
      write_sums<S>(m, a, b, group, begin + part, count);
      __syncthreads();
    }
    write_gradients<S>(m, a, b, begin, steps, c0, d_skip);
    // A thread reads above only what it writes itself next, or what is written after the next barrier.
  }
  if (a.d.d_initial_state) write_state<S>(gh, a.d.d_initial_state, z, b, c0, at);
#pragma unroll
  for (int i = 0; i < CT; ++i)
#pragma unroll
    for (int j = 0; j < S::NT; ++j) d_rate[i][j] *= 0.693147181f * rate[i][j];
  write_state<S>(d_rate, a.d_A_log, z, b, c0, at);
  four(m.skip[at.thread]) = d_skip;
  __syncthreads();
  if (at.thread < S::channels && c0 + at.thread < z.channels) {
    float sum = 0;
    for (int i = at.thread / 4; i < kThreads; i += S::channels / 4) sum += m.skip[i][at.thread % 4];
    a.d_skip[static_cast<int64_t>(b) * z.channels + c0 + at.thread] = sum;
  }
}

}  // namespace

cudaError_t backward(const BackwardArguments& a, int padded, Target to) {
  return with_shape(a.p, padded, [&](auto shape) {
    using S = decltype(shape);
    return launch(scan_backward<S>, grid_of(a.z), kThreads, sizeof(Memory<S>), to, a);
  });
}

}  // namespace sb::cuda::scan
