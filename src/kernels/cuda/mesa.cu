#include "kernels/cuda/mesa.h"

#include "kernels/cuda/mesa_strip.cuh"
#include "kernels/cuda/sizes.h"

namespace sb::cuda {
namespace mesa {
namespace {

using attention::Pieces;

struct Arguments {
  Mesa p;
  int chunks, row;             // row: of a state
  RowsOf<const float> rights;  // q or d_out
  float *solution, *out;       // x and o, or y and null
};

template <int KP>
struct Layout {
  size_t state, keys, x, ridge, factors, bytes;
  __host__ __device__ Layout() {
    Pieces m;
    state = m.take<bf16>(SplitTile<KP, KP>::size);
    keys = m.take<bf16>(SplitTile<kChunk, KP>::size);
    x = m.take<float>(kChunk * KP);  // before it is used, the chunk's decays are there
    ridge = m.take<float>(KP);
    factors = m.take<Factors>(1);
    bytes = m.used;
    static_assert(kChunk * KP * sizeof(float) >= sizeof(StepDecays));
  }
};

template <int KP>
constexpr int kBlocksAtOnce = KP <= 64    ? 3
                              : KP <= 112 ? 2
                                          : 1;

// One block per chunk. Backward: the right sides S_t d_t are computed first; forward: the outputs S_t^T x_t last.
template <int KP, bool Backward>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<KP>) solve(const __grid_constant__ Arguments a) {
  constexpr int Tiles = KP / 8, Steps = KP / 16;
  const Layout<KP> at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  float4* const x = reinterpret_cast<float4*>(memory + at_bytes.x) + threadIdx.x;
  float* const ridge = reinterpret_cast<float*>(memory + at_bytes.ridge);
  Factors& factors = *reinterpret_cast<Factors*>(memory + at_bytes.factors);
  StepDecays& decays = *reinterpret_cast<StepDecays*>(memory + at_bytes.x);

  const Mesa& p = a.p;
  const int T = static_cast<int>(p.time), H = static_cast<int>(p.heads);
  const int K = static_cast<int>(p.key_width), V = static_cast<int>(p.value_width);
  // The last chunks, which may be short, come last.
  const int64_t sequences = p.batch * H, sequence = blockIdx.x % sequences, b = sequence / H, h = sequence % H;
  const int chunk = static_cast<int>(blockIdx.x / sequences), begin = chunk * kChunk;
  const int thread = static_cast<int>(threadIdx.x), lane = lane_id();
  const int64_t frame = b * T + begin;
  const float *beta = p.beta + frame * H + h, *g = p.g + frame * H + h;
  const float* const G = p.states + (sequence * a.chunks + chunk) * K * a.row;
  const auto rows = [&](const RowsOf<const float>& of) {
    return of.data + b * of.batch + begin * of.time + h * of.head;
  };

  Strip<KP> own;
  own.state.data = reinterpret_cast<bf16*>(memory + at_bytes.state);
  own.keys.data = reinterpret_cast<bf16*>(memory + at_bytes.keys);
  own.factors = &factors;
  own.strip = thread / 32, own.row = kStrip * own.strip + lane / 4, own.pair = lane % 4 * 2;
  own.steps = min(kChunk, T - begin);
  const bool active = kStrip * own.strip < own.steps;
  const auto load_keys = [&] {
    own.state.load(G, a.row, K, K);
    own.keys.load(rows(p.k), p.k.time, own.steps, K);
  };
  const auto load_values = [&] {
    own.state.load(G + K, a.row, K, V);
    own.keys.load(rows(p.v), p.v.time, own.steps, V);
  };

  if (thread < 32) decays.scan(g, H, own.steps, lane);
  for (int i = thread; i < KP; i += kThreads) ridge[i] = i < K ? p.ridge[h * K + i] : 0.f;
  if constexpr (Backward)
    load_values();
  else
    load_keys();
  __syncthreads();
  own.weigh(decays, beta, H);
  for (int i = thread; i < kStrips * kChunk; i += kThreads) {
    const int t = i % kChunk, of = i / kChunk, end = kStrip * of + kStrip - 1;
    if (of == kStrips - 1)
      factors.to_end[t] =
          t < own.steps ? beta[t * H] * decays.template between<Product::fp32>(t, t | (kStrip - 1)) : 0.f;
    else
      factors.from_end[of][t] = decays.template between<Product::fp32>(end, t);
  }
  __syncthreads();

  Sum residual[Tiles];
  if (active) own.read(residual, rows(a.rights), a.rights.time, Backward ? V : K);
  if constexpr (Backward) {
    Split weights[kStrips];
    if (active) {
      Split given[Steps];
      own.split(given, residual);
      own.template read_state<true>(residual, given);
#pragma unroll
      for (int of = 0; of < kStrips; ++of)
        if (of <= own.strip) own.score(weights[of], given, of);
    }
    __syncthreads();
    load_keys();
    __syncthreads();
#pragma unroll
    for (int of = 0; of < kStrips; ++of)
      if (active && of <= own.strip) own.read_rows(residual, weights[of], of);
  }
  if (active) {
    own.solve(residual, x, ridge, static_cast<int>(p.steps));
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
      const float4 found = x[i * kThreads];
      residual[i][0] = found.x, residual[i][1] = found.y, residual[i][2] = found.z, residual[i][3] = found.w;
    }
    own.write(residual, a.solution + (frame * H + h) * K, static_cast<int64_t>(H) * K, K);
  }
  if constexpr (!Backward) {
    Split solved[Steps], weights[kStrips];
    if (active) {
      own.split(solved, residual);
#pragma unroll
      for (int of = 0; of < kStrips; ++of)
        if (of <= own.strip) own.score(weights[of], solved, of);
    }
    __syncthreads();
    load_values();
    __syncthreads();
    if (!active) return;
    own.template read_state<false>(residual, solved);
#pragma unroll
    for (int of = 0; of < kStrips; ++of)
      if (of <= own.strip) own.read_rows(residual, weights[of], of);
    own.write(residual, a.out + (frame * H + h) * V, static_cast<int64_t>(H) * V, V);
  }
}

template <bool Backward>
cudaError_t run(const Arguments& a, Target to) {
  const auto blocks = static_cast<unsigned>(a.p.batch * a.p.heads * a.chunks);
  const auto with = [&](auto kernel, size_t bytes) { return launch(kernel, blocks, kThreads, bytes, to, a); };
  const int64_t width = a.p.key_width > a.p.value_width ? a.p.key_width : a.p.value_width;
  if (width <= 64) return with(solve<64, Backward>, Layout<64>().bytes);
  if (width <= 80) return with(solve<80, Backward>, Layout<80>().bytes);
  if (width <= 96) return with(solve<96, Backward>, Layout<96>().bytes);
  if (width <= 112) return with(solve<112, Backward>, Layout<112>().bytes);
  return with(solve<128, Backward>, Layout<128>().bytes);
}

bool valid(const Mesa& p) {
  return within(p.batch, 1 << 20) && within(p.time, 1 << 24) && within(p.heads, 1 << 16) && within(p.key_width, 128) &&
         within(p.value_width, 128) && p.steps >= 0 && p.steps <= 1 << 20 &&
         p.batch * p.heads * ((p.time + kChunk - 1) / kChunk) < (int64_t{1} << 31);
}

Arguments arguments(const Mesa& p, const RowsOf<const float>& rights, float* solution, float* out) {
  return {p,
          static_cast<int>((p.time + kChunk - 1) / kChunk),
          static_cast<int>((p.key_width + p.value_width + 7) / 8 * 8),
          rights,
          solution,
          out};
}

}  // namespace
}  // namespace mesa

using namespace mesa;

bool mesa_fits(int64_t key_width, int64_t value_width) {
  const Mesa p{1, 1, 1, key_width, value_width, 1, {}, {}, nullptr, nullptr, nullptr, nullptr};
  const Arguments a = arguments(p, {}, nullptr, nullptr);
  const Target nowhere = Target::nowhere();
  return valid(p) && run<false>(a, nowhere) == cudaSuccess && run<true>(a, nowhere) == cudaSuccess;
}

cudaError_t mesa_forward(const Mesa& p, const RowsOf<const float>& q, float* x, float* out, cudaStream_t stream) {
  return valid(p) ? run<false>(arguments(p, q, x, out), stream) : cudaErrorInvalidValue;
}

cudaError_t mesa_backward(const Mesa& p, const RowsOf<const float>& d_out, float* y, cudaStream_t stream) {
  return valid(p) ? run<true>(arguments(p, d_out, y, nullptr), stream) : cudaErrorInvalidValue;
}

}  // namespace sb::cuda
