#include "kernels/cuda/selective_scan_tiles.cuh"

namespace sb::cuda::scan {
namespace {

template <class S>
struct Memory {
  float B[S::stage][S::states], C[S::stage][S::states];
  float x[S::stage][S::channels], delta[S::stage][S::channels], written[S::stage][S::channels],
      y[S::stage][S::channels];
};

// The inputs of the next steps, read while these are computed.
template <class S>
struct Inputs {
  using E = typename S::E;
  Share<S, E, S::states> B, C;
  Share<S, E, S::channels> x;
  Share<S, float, S::channels> delta, write;
  __device__ void read(const ForwardArguments& a, int b, int begin, int c0) {
    const int steps = min(S::stage, a.z.time - begin);
    B.read({typed<E>(a.p.B), b, begin, 0, a.z.states}, steps);
    C.read({typed<E>(a.p.C), b, begin, 0, a.z.states}, steps);
    x.read({typed<E>(a.p.x), b, begin, c0, a.z.channels}, steps);
    delta.read({a.p.delta, b, begin, c0, a.z.channels}, steps);
    if (a.p.write.data) write.read({a.p.write, b, begin, c0, a.z.channels}, steps);
  }
  __device__ void put(Memory<S>& m, bool writes) const {
    B.put(m.B);
    C.put(m.C);
    x.put(m.x);
    delta.put(m.delta);
    Share<S, float, S::channels>::for_fours([&](int i, int t, int c) {
      four(&m.written[t][c]) = x.x[i].values() * (writes ? write : delta).x[i].values();
    });
  }
};

template <class S>
__global__ void __launch_bounds__(kThreads, 2) scan_forward(const __grid_constant__ ForwardArguments a) {
  using E = typename S::E;
  extern __shared__ __align__(16) unsigned char bytes[];
  Memory<S>& m = *reinterpret_cast<Memory<S>*>(bytes);
  const Place<S> at;
  const Sizes& z = a.z;
  const int b = static_cast<int>(blockIdx.y), group = static_cast<int>(blockIdx.x), c0 = group * S::channels;
  float h[CT][S::NT], rate[CT][S::NT];
  read_rates<S>(rate, a.p, z, c0, at);
  read_state<S>(h, a.p.initial_state, z, b, c0, at);
  Inputs<S> inputs;
  inputs.read(a, b, 0, c0);

  for (int begin = 0; begin < z.time; begin += S::stage) {
    const int steps = min(S::stage, z.time - begin);
    inputs.put(m, a.p.write.data != nullptr);
    __syncthreads();
    if (begin + S::stage < z.time) inputs.read(a, b, begin + S::stage, c0);

#pragma unroll 1
    for (int part = 0; part < steps; part += S::L) {
      if (a.kept) {
        uint4* kept = kept_states<S>(a.kept, z, b, group, (begin + part) / S::L);
#pragma unroll
        for (int i = 0; i < S::parts; ++i) kept[i * kThreads + at.thread] = packed<S>(h, i);
      }
      const int end = min(part + S::L, steps);
#pragma unroll 2
      for (int t = part; t < end; ++t) {
        const float4 d4 = four(&m.delta[t][at.channel]), u4 = four(&m.written[t][at.channel]);
        const float d[CT] = {d4.x, d4.y, d4.z, d4.w}, u[CT] = {u4.x, u4.y, u4.z, u4.w};
        float y[CT] = {};
#pragma unroll
        for (int j0 = 0; j0 < S::NT; j0 += 4) {
          const float4 B4 = four(&m.B[t][at.state + j0]), C4 = four(&m.C[t][at.state + j0]);
          const float B[4] = {B4.x, B4.y, B4.z, B4.w}, C[4] = {C4.x, C4.y, C4.z, C4.w};
#pragma unroll
          for (int i = 0; i < CT; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              float factor = exp2_fast(d[i] * rate[i][j0 + j]);
              if constexpr (S::bounded) factor = at_least(factor, a.p.a_min);
              h[i][j0 + j] = fmaf(factor, h[i][j0 + j], u[i] * B[j]);
              y[i] = fmaf(C[j], h[i][j0 + j], y[i]);
            }
        }
        const float sum = sum_states<S::NL>(y, at.lane);
        if (at.along < CT) m.y[t][at.channel + channel_of(at.lane)] = sum;
      }
    }
    __syncthreads();

    if (a.out.data) {
      const Window<E> out(typed<E>(a.out), b, begin, c0, z.channels);
      Share<S, E, S::channels>::for_fours([&](int, int t, int c) {
        if (t >= steps || c >= out.columns) return;
        const float4 skip = read_four(a.p.skip + c0 + c, out.columns - c);
        write_four(out, t, c, skip * four(&m.x[t][c]) + four(&m.y[t][c]));
      });
    }
    // x is read here and written next by the same thread; the other tiles were last read before the barrier
  }
  if (a.final_state) write_state<S>(h, a.final_state, z, b, c0, at);
}

}  // namespace

cudaError_t forward(const ForwardArguments& a, int padded, Target to) {
  return with_shape(a.p, padded, [&](auto shape) {
    using S = decltype(shape);
    return launch(scan_forward<S>, grid_of(a.z), kThreads, sizeof(Memory<S>), to, a);
  });
}

}  // namespace sb::cuda::scan
