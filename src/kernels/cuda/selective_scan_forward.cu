#include "kernels/cuda/selective_scan_tiles.cuh"

namespace sb::cuda::scan {
namespace {

template <class S>
struct Memory {
  float B[S::L][S::states], C[S::L][S::states];
  float delta[S::L][S::channels], written[S::L][S::channels], x[S::L][S::channels], y[S::L][S::channels];
};

template <class S>
__global__ void __launch_bounds__(kThreads, S::NT == 4 ? 3 : 2)
    scan_forward(const __grid_constant__ ForwardArguments a) {
  using E = typename S::E;
  extern __shared__ __align__(16) unsigned char bytes[];
  Memory<S>& m = *reinterpret_cast<Memory<S>*>(bytes);
  const Place<S> at;
  const Sizes& z = a.z;
  const int b = static_cast<int>(blockIdx.y), group = static_cast<int>(blockIdx.x), c0 = group * S::channels;
  float h[CT][S::NT], rate[CT][S::NT];
  read_rates<S>(rate, a.p, z, c0, at);
  read_state<S>(h, a.p.initial_state, z, b, c0, at);

  for (int chunk = 0; chunk < z.chunks; ++chunk) {
    const int begin = chunk * S::L, steps = min(S::L, z.time - begin);
    if (a.kept) {
      uint4* kept = kept_states<S>(a.kept, z, b, group, chunk);
#pragma unroll
      for (int i = 0; i < S::parts; ++i) kept[i * kThreads + at.thread] = packed<S>(h, i);
    }
    read_steps<S::L, S::states>(typed<E>(a.p.B), b, begin, steps, 0, z.states,
                                [&](int t, int n, float v) { m.B[t][n] = v; });
    read_steps<S::L, S::states>(typed<E>(a.p.C), b, begin, steps, 0, z.states,
                                [&](int t, int n, float v) { m.C[t][n] = v; });
    read_steps<S::L, S::channels>(typed<E>(a.p.x), b, begin, steps, c0, z.channels,
                                  [&](int t, int c, float v) { m.x[t][c] = v; });
    const ScanRows<const float>& write = a.p.write.data ? a.p.write : a.p.delta;
    read_steps<S::L, S::channels>(a.p.delta, b, begin, steps, c0, z.channels,
                                  [&](int t, int c, float v) { m.delta[t][c] = v; });
    // a thread reads the x it wrote itself
    read_steps<S::L, S::channels>(write, b, begin, steps, c0, z.channels,
                                  [&](int t, int c, float v) { m.written[t][c] = v * m.x[t][c]; });
    __syncthreads();

#pragma unroll 2
    for (int t = 0; t < steps; ++t) {
      const float4 d4 = *reinterpret_cast<const float4*>(&m.delta[t][at.channel]);
      const float4 u4 = *reinterpret_cast<const float4*>(&m.written[t][at.channel]);
      const float d[CT] = {d4.x, d4.y, d4.z, d4.w}, u[CT] = {u4.x, u4.y, u4.z, u4.w};
      float y[CT] = {};
#pragma unroll
      for (int j0 = 0; j0 < S::NT; j0 += 4) {
        const float4 B4 = *reinterpret_cast<const float4*>(&m.B[t][at.state + j0]);
        const float4 C4 = *reinterpret_cast<const float4*>(&m.C[t][at.state + j0]);
        const float B[4] = {B4.x, B4.y, B4.z, B4.w}, C[4] = {C4.x, C4.y, C4.z, C4.w};
#pragma unroll
        for (int i = 0; i < CT; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const float e = d[i] * rate[i][j0 + j];
            float factor = kPolynomials > 0 && i < kPolynomials && j == 3 ? exp2_polynomial(e) : exp2_special(e);
            if constexpr (S::bounded) factor = fmaxf(factor, a.p.a_min);
            h[i][j0 + j] = fmaf(factor, h[i][j0 + j], u[i] * B[j]);
            y[i] = fmaf(C[j], h[i][j0 + j], y[i]);
          }
      }
      const float sum = sum_states<S::NL>(y, at.lane);
      if (at.along < CT) m.y[t][at.channel + channel_of(at.lane)] = sum;
    }
    __syncthreads();

    if (a.out.data) {
      E* out = static_cast<E*>(a.out.data) + b * a.out.batch + begin * a.out.time + c0;
#pragma unroll 4
      for (int i = at.thread; i < S::L * S::channels; i += kThreads) {
        const int t = i / S::channels, c = i % S::channels;
        if (t < steps && c0 + c < z.channels)
          out[t * a.out.time + c] = from_float<E>(fmaf(a.p.skip[c0 + c], m.x[t][c], m.y[t][c]));
      }
    }
    // x is read above and written below by the same thread; the other tiles were last read before the barrier
  }
  if (a.final_state) write_state<S>(h, a.final_state, z, b, c0, at);
}

}  // namespace

cudaError_t forward(const ForwardArguments& a, cudaStream_t stream) {
  return with_shape(a.p, [&](auto shape) {
    using S = decltype(shape);
    return launch(scan_forward<S>, a.z, sizeof(Memory<S>), a, stream);
  });
}

}  // namespace sb::cuda::scan
