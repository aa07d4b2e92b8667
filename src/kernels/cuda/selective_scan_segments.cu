// States between segments of a sequence, for few long sequences, whose scan alone would leave most of a GPU idle. All
// segments are first scanned at once from zero, without outputs:
//   h_t = a_t h_{t-1} + w_t B_t x_t from the segment's start, or, backward, gh_{t-1} = a_t (gh_t + C_t gy_t) from its
//   end
// Then the states where the segments meet follow one after the other: state <- (product of a_t) state + result.
#include "kernels/cuda/selective_scan_tiles.cuh"

namespace sb::cuda::scan {
namespace {

template <class S>
struct Memory {
  float row[S::stage][S::states];  // B, or C
  float delta[S::stage][S::channels], added[S::stage][S::channels];
};

template <class S, bool backward>
__device__ inline void read_inputs(Memory<S>& m, const SegmentArguments& a, int b, int begin, int steps, int c0) {
  using E = typename S::E;
  Share<S, E, S::states> row;
  Share<S, E, S::channels> x;
  Share<S, float, S::channels> delta, write;
  row.read({typed<E>(backward ? a.p.C : a.p.B), b, begin, 0, a.z.states}, steps);
  x.read({typed<E>(backward ? a.d_out : a.p.x), b, begin, c0, a.z.channels}, steps);
  delta.read({a.p.delta, b, begin, c0, a.z.channels}, steps);
  if (!backward && a.p.write.data)
    write.read({a.p.write, b, begin, c0, a.z.channels}, steps);
  else
    write = delta;
  row.put(m.row);
  delta.put(m.delta);
  Share<S, float, S::channels>::for_fours([&](int i, int t, int c) {
    four(&m.added[t][c]) = backward ? x.x[i].values() : x.x[i].values() * write.x[i].values();
  });
}

// blockIdx.y: the segment
template <class S, bool backward>
__global__ void __launch_bounds__(kThreads, 2) scan_segments(const __grid_constant__ SegmentArguments a) {
  extern __shared__ __align__(16) unsigned char bytes[];
  Memory<S>& m = *reinterpret_cast<Memory<S>*>(bytes);
  const Place<S> at;
  const Sizes& z = a.z;
  const int segment = static_cast<int>(blockIdx.y), c0 = static_cast<int>(blockIdx.x) * S::channels;
  if (segment == (backward ? 0 : z.batch - 1)) return;  // no segment follows it
  float h[CT][S::NT] = {}, rate[CT][S::NT], product[CT][S::NT], sum[CT] = {};
  read_rates<S>(rate, a.p, z, c0, at);
#pragma unroll
  for (int i = 0; i < CT; ++i)
#pragma unroll
    for (int j = 0; j < S::NT; ++j) product[i][j] = 1;

  const int stages = (z.time + S::stage - 1) / S::stage;
  for (int stage = 0; stage < stages; ++stage) {
    const int begin = (backward ? stages - 1 - stage : stage) * S::stage, steps = min(S::stage, z.time - begin);
    read_inputs<S, backward>(m, a, segment, begin, steps, c0);
    __syncthreads();
#pragma unroll 2
    for (int step = 0; step < steps; ++step) {
      const int t = backward ? steps - 1 - step : step;
      const float4 d4 = four(&m.delta[t][at.channel]), u4 = four(&m.added[t][at.channel]);
      const float d[CT] = {d4.x, d4.y, d4.z, d4.w}, u[CT] = {u4.x, u4.y, u4.z, u4.w};
#pragma unroll
      for (int i = 0; i < CT; ++i) sum[i] += d[i];
#pragma unroll
      for (int j0 = 0; j0 < S::NT; j0 += 4) {
        const float4 v4 = four(&m.row[t][at.state + j0]);
        const float v[4] = {v4.x, v4.y, v4.z, v4.w};
#pragma unroll
        for (int i = 0; i < CT; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const int n = j0 + j;
            float factor = exp2_fast(d[i] * rate[i][n]);
            if constexpr (S::bounded) {
              factor = at_least(factor, a.p.a_min);
              product[i][n] *= factor;
            }
            h[i][n] = backward ? factor * fmaf(u[i], v[j], h[i][n]) : fmaf(factor, h[i][n], u[i] * v[j]);
          }
      }
    }
    __syncthreads();
  }
  if constexpr (!S::bounded) {
#pragma unroll
    for (int i = 0; i < CT; ++i)
#pragma unroll
      for (int j = 0; j < S::NT; ++j) product[i][j] = exp2_fast(sum[i] * rate[i][j]);
  }
  write_state<S>(h, a.states, z, segment, c0, at);
  write_state<S>(product, a.decays, z, segment, c0, at);
}

// states[segment]: from the result of the segment to the state before it, or, backward, to the gradient behind it
__global__ void __launch_bounds__(kThreads)
    join_segments(float* states, const float* decays, const float* first, int segments, int64_t size, bool backward) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= size) return;
  float state = first ? first[i] : 0;
  for (int k = 0; k < segments; ++k) {
    const int64_t at = (backward ? segments - 1 - k : k) * size + i;
    const bool last = k == segments - 1;
    const float result = last ? 0 : states[at], decay = last ? 0 : decays[at];
    states[at] = state;
    state = fmaf(decay, state, result);
  }
}

}  // namespace

cudaError_t join(const SegmentArguments& a, const float* first, bool backward, int padded, Target to) {
  const cudaError_t status = with_shape(a.p, padded, [&](auto shape) {
    using S = decltype(shape);
    return launch(backward ? scan_segments<S, true> : scan_segments<S, false>, grid_of(a.z), kThreads,
                  sizeof(Memory<S>), to, a);
  });
  if (status != cudaSuccess) return status;
  const int64_t size = static_cast<int64_t>(a.z.channels) * a.z.states;
  return launch(join_segments, dim3(static_cast<unsigned>((size + kThreads - 1) / kThreads)), kThreads, 0, to, a.states,
                a.decays, first, a.z.batch, size, backward);
}

}  // namespace sb::cuda::scan
