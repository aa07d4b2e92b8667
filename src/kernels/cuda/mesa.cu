#include "kernels/cuda/mesa.h"

#include "kernels/cuda/decayed_attention_kernels.cuh"

namespace sb::cuda {
namespace mesa {
namespace {

using attention::Pieces;
using attention::StepDecays;

constexpr int kThreads = 128, kStrip = 16, kStrips = kChunk / kStrip;  // a warp has a strip of 16 steps
// Below this, squared residuals count as 0: rows that have converged stay as they are.
constexpr float kTiny = 1e-30f;

struct Arguments {
  Mesa p;
  int chunks, row;             // row: of a state
  RowsOf<const float> rights;  // q or d_out
  float *solution, *out;       // x and o, or y and null
};

// Columns 16 i .. 16 i + 15 of a warp's 16 rows as sums of two bf16 numbers, and back
struct Split {
  Left<bf16> high, low;
  __device__ void set(const Sum* x) {
    from_sums(high, x);
    Sum rest[2];
    to_sums(rest, high);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) rest[n][e] = x[n][e] - rest[n][e];
    from_sums(low, rest);
  }
  __device__ void get(Sum (&x)[2]) const {
    Sum rest[2];
    to_sums(x, high);
    to_sums(rest, low);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) x[n][e] += rest[n][e];
  }
};

// A tile in shared memory as sums of two bf16 numbers: the first ones, then the second ones
template <int Rows, int KP>
struct SplitTile {
  static constexpr int ld = leading<bf16>(KP), rest = Rows * ld, size = 2 * rest;
  bf16* data;
  // From rows of floats; elements outside rows x width are zero
  __device__ void load(const float* from, int64_t stride, int rows, int width) const {
    constexpr int pairs = KP / 2;
#pragma unroll 7
    for (int i = static_cast<int>(threadIdx.x); i < Rows * pairs; i += kThreads) {
      const int r = i / pairs, c = i % pairs * 2;
      const float* p = from + r * stride + c;
      const float x = r < rows && c < width ? p[0] : 0.f, y = r < rows && c + 1 < width ? p[1] : 0.f;
      const uint32_t high = pack(x, y);
      const float2 first = unpack(high);
      *reinterpret_cast<uint32_t*>(data + r * ld + c) = high;
      store_pair(data + rest + r * ld + c, x - first.x, y - first.y);
    }
  }
  // sums += a tile, from (row, column) of the tile on. a's columns are the tile's rows, or its columns if not
  // Transposed
  template <bool Transposed, int Tiles>
  __device__ __forceinline__ void multiply(Sum (&sums)[Tiles], const Split& a, int row, int column) const {
    const bf16* const from = data + row * ld + column;
#pragma unroll
    for (int i = 0; i < Tiles; i += 2) {
      Right<bf16> high[2], low[2];
      if constexpr (Transposed) {
        load_transposed(high, from + 8 * i, ld);
        load_transposed(low, from + rest + 8 * i, ld);
      } else {
        sb::cuda::load(high, from + 8 * i * ld, ld);
        sb::cuda::load(low, from + rest + 8 * i * ld, ld);
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) sb::cuda::multiply(sums[i + n], a.low, high[n]);
#pragma unroll
      for (int n = 0; n < 2; ++n) sb::cuda::multiply(sums[i + n], a.high, low[n]);
#pragma unroll
      for (int n = 0; n < 2; ++n) sb::cuda::multiply(sums[i + n], a.high, high[n]);
    }
  }
};

// Weights L_tj beta_j. Between strips they are products of two decays, from step j to the end of its strip and from
// there to step t.
struct Factors {
  float to_end[kChunk];                 // times beta_j
  float from_end[kStrips - 1][kChunk];  // of each strip
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

// One warp's strip of a chunk. Sums hold its rows; lane l has rows l / 4 and l / 4 + 8.
template <int KP>
struct Strip {
  static constexpr int Tiles = KP / 8, Steps = KP / 16;
  SplitTile<KP, KP> state;
  SplitTile<kChunk, KP> keys;
  const Factors* factors;
  int strip, row, pair;  // row: the lane's first one, in the chunk; pair: its columns in a tile of 8
  int steps;             // of the chunk
  float since[2];        // decay from the chunk's start, of the lane's two rows
  Sum own[2];            // weights within the strip

  __device__ void weigh(const StepDecays& decays, const float* beta, int64_t stride) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int t = row + e / 2 * 8;
      since[e / 2] = decays.since[t];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int j = kStrip * strip + 8 * n + pair + e % 2;
        own[n][e] = j < steps ? beta[j * stride] * decays.template between<Product::fp32>(j, t) : 0.f;
      }
    }
  }
  template <class Body>
  __device__ __forceinline__ void for_elements(int width, const Body& body) const {
#pragma unroll
    for (int i = 0; i < Tiles; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int t = row + e / 2 * 8, c = 8 * i + pair + e % 2;
        body(i, e, t, c, t < steps && c < width);
      }
  }
  __device__ void read(Sum (&x)[Tiles], const float* from, int64_t stride, int width) const {
    for_elements(width,
                 [&](int i, int e, int t, int c, bool inside) { x[i][e] = inside ? from[t * stride + c] : 0.f; });
  }
  __device__ void write(const Sum (&x)[Tiles], float* to, int64_t stride, int width) const {
    for_elements(width, [&](int i, int e, int t, int c, bool inside) {
      if (inside) to[t * stride + c] = x[i][e];
    });
  }
  __device__ static void split(Split (&to)[Steps], const Sum (&x)[Tiles]) {
#pragma unroll
    for (int s = 0; s < Steps; ++s) to[s].set(x + 2 * s);
  }

  // sums = c_t a times the state, or times its transpose
  template <bool Transposed>
  __device__ __forceinline__ void read_state(Sum (&sums)[Tiles], const Split (&a)[Steps]) const {
    clear(sums);
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      if constexpr (Transposed)
        state.template multiply<false>(sums, a[s], 0, 16 * s);
      else
        state.template multiply<true>(sums, a[s], 16 * s, 0);
    }
#pragma unroll
    for (int i = 0; i < Tiles; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][e] *= since[e / 2];
  }
  // L_tj beta_j (a_t . row j of `keys`) for strip `of` of the rows
  __device__ __forceinline__ void score(Split& weights, const Split (&a)[Steps], int of) const {
    Sum sums[2];
    clear(sums);
#pragma unroll
    for (int s = 0; s < Steps; ++s) keys.template multiply<false>(sums, a[s], kStrip * of, 16 * s);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[n][e] *=
            of == strip ? own[n][e]
                        : factors->from_end[of][row + e / 2 * 8] * factors->to_end[kStrip * of + 8 * n + pair + e % 2];
    weights.set(sums);
  }
  __device__ __forceinline__ void read_rows(Sum (&sums)[Tiles], const Split& weights, int of) const {
    keys.template multiply<true>(sums, weights, kStrip * of, 0);
  }

  // Solves for the right sides `residual`; the solution is left in x: a lane's tiles, kThreads apart.
  __device__ void solve(Sum (&residual)[Tiles], float4* x, const float* ridge, int iterations) const {
    const auto dot = [](float(&sums)[2]) {
      sums[0] = sum_lanes(sums[0], 1, 4);
      sums[1] = sum_lanes(sums[1], 1, 4);
    };
    float square[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
      x[i * kThreads] = float4{0, 0, 0, 0};
#pragma unroll
      for (int e = 0; e < 4; ++e) square[e / 2] = fmaf(residual[i][e], residual[i][e], square[e / 2]);
    }
    dot(square);
    Split direction[Steps];
    split(direction, residual);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      Sum image[Tiles];
      read_state<false>(image, direction);
      for (int of = 0; of <= strip; ++of) {
        Split weights;
        score(weights, direction, of);
        read_rows(image, weights, of);
      }
      float step[2] = {0, 0}, next[2] = {0, 0};
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
        Sum p[2];
        direction[s].get(p);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const float2 more = load_pair(ridge + 16 * s + 8 * n + pair);
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            float& y = image[2 * s + n][e];
            y = fmaf(e % 2 ? more.y : more.x, p[n][e], y);
            step[e / 2] = fmaf(p[n][e], y, step[e / 2]);
          }
        }
      }
      dot(step);
#pragma unroll
      for (int e = 0; e < 2; ++e) step[e] = square[e] / (step[e] + kTiny);
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
        Sum p[2];
        direction[s].get(p);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          float4 sum = x[(2 * s + n) * kThreads];
          sum.x = fmaf(step[0], p[n][0], sum.x), sum.y = fmaf(step[0], p[n][1], sum.y);
          sum.z = fmaf(step[1], p[n][2], sum.z), sum.w = fmaf(step[1], p[n][3], sum.w);
          x[(2 * s + n) * kThreads] = sum;
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            float& r = residual[2 * s + n][e];
            r = fmaf(-step[e / 2], image[2 * s + n][e], r);
            next[e / 2] = fmaf(r, r, next[e / 2]);
          }
        }
      }
      dot(next);
      const float turn[2] = {next[0] / (square[0] + kTiny), next[1] / (square[1] + kTiny)};
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
        Sum p[2];
        direction[s].get(p);
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) p[n][e] = fmaf(turn[e / 2], p[n][e], residual[2 * s + n][e]);
        direction[s].set(p);
      }
      square[0] = next[0], square[1] = next[1];
    }
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
  const auto within = [](int64_t x, int64_t most) { return x >= 1 && x <= most; };
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
