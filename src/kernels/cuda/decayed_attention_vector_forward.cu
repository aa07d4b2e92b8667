// Forward pass if every key channel has its own decay. A first pass computes the pairs of all chunks in parallel:
// within strips of 16 rows by levels (decayed_attention_levels.cuh), and between strips I > J as (Q_I decayed since I's
// start, times the strips between) (K_J decayed until J's end)^T. It also computes the queries decayed since the
// chunk's start and the keys decayed until its end. A second pass loops over the chunks.
#include "kernels/cuda/decayed_attention_levels.cuh"

namespace sb::cuda::attention {
namespace {

template <Product P, int KP>
struct PairLayout {
  using E = Operand<P>;
  static constexpr int LK = leading<E>(KP), LP = leading<E>(kChunk), LG = leading<E>(kGroup);
  static constexpr int levels = kLevels * 16 * LG;  // scratch of one warp
  size_t q, k, scratch, pairs, diagonal, strips, bytes;
  __host__ __device__ PairLayout() {
    Pieces m;
    q = m.take<E>(kChunk * LK);
    k = m.take<E>(kChunk * LK);
    scratch = m.take<E>(8 * levels);
    pairs = m.take<E>(kChunk * LP);
    diagonal = m.take<float>(2 * kChunk * 16);
    strips = m.take<float>(4 * KP);
    bytes = m.used;
  }
};

// Pairs of one strip over half of the channels; q and k become decayed since the strip's start and until its end.
template <class L, Product P, int KP>
__device__ void pairs_in_strip(Operand<P>* q, Operand<P>* k, Operand<P>* scratch, float* diagonal, float* strips,
                               const float* g, int64_t g_stride, int rows, int width, const Place& at) {
  using E = Operand<P>;
  const int k0 = at.half * (KP / 2);
  E *q_rows = q + at.strip * 16 * L::LK, *k_rows = k + at.strip * 16 * L::LK;
  float same[1][2][4], acc[kLevels][1][2][4];
  clear(same);
#pragma unroll
  for (int l = 0; l < kLevels; ++l) clear(acc[l]);
  for (int c0 = k0; c0 < k0 + KP / 2; c0 += kGroup) {
    BlockDecays d;
    d.read<E>(g + c0, g_stride, rows, width - c0, at);
    float x[8], y[8], z[8];
    read_group(x, q_rows + c0, L::LK, at);
    read_group(y, k_rows + c0, L::LK, at);
    multiply<P, Depth::fast, Depth::fast, kGroup>(same, q_rows + c0, L::LK, k_rows + c0, L::LK, at.lane);
#pragma unroll
    for (int l = 0; l < kLevels; ++l) {
#pragma unroll
      for (int e = 0; e < 8; ++e) z[e] = BlockDecays::later(e, 1 << l, at) ? x[e] * d.since[e] : y[e] * d.until[e];
      write_group(z, scratch + l * 16 * L::LG, L::LG, at);
      d.merge(1 << l, at);
    }
    __syncwarp();
#pragma unroll
    for (int l = 0; l < kLevels; ++l) {
      const E* tile = scratch + l * 16 * L::LG;
      multiply<P, Depth::fast, Depth::fast, kGroup>(acc[l], tile, L::LG, tile, L::LG, at.lane);
    }
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      x[e] *= d.since[e];
      y[e] *= d.until[e];
      if (e % 4 < 2 && at.row == 0) strips[at.strip * KP + c0 + Element8::column(e, at)] = d.total[e];
    }
    write_group(x, q_rows + c0, L::LK, at);
    write_group(y, k_rows + c0, L::LK, at);
  }
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int i = Element8::row(e, at), j = Element8::column(e, at), level = i > j ? level_of(i, j) : -1;
    float sum = i == j ? same[0][e / 4][e % 4] : 0.f;
#pragma unroll
    for (int l = 0; l < kLevels; ++l)
      if (level == l) sum = acc[l][0][e / 4][e % 4];
    diagonal[(at.half * kChunk + at.strip * 16 + i) * 16 + j] = sum;
  }
}

// One chunk of one sequence and head: its pairs, decayed queries and keys, and decays.
template <Product P, int KP>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 && KP <= 128 ? 2 : 1)
    vector_pairs(const __grid_constant__ ForwardArguments a) {
  using E = Operand<P>;
  using L = PairLayout<P, KP>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E *q = reinterpret_cast<E*>(memory + at_bytes.q), *k = reinterpret_cast<E*>(memory + at_bytes.k);
  E* pairs = reinterpret_cast<E*>(memory + at_bytes.pairs);
  float* diagonal = reinterpret_cast<float*>(memory + at_bytes.diagonal);
  float* strips = reinterpret_cast<float*>(memory + at_bytes.strips);

  const Place at;
  const Sizes& z = a.z;
  const int64_t chunk_at = blockIdx.x;
  const int chunk = static_cast<int>(chunk_at % z.chunks), pair = static_cast<int>(chunk_at / z.chunks);
  const int h = pair % z.H, b = pair / z.H, group = h / z.per_group;
  const int begin = chunk * kChunk, steps = min(kChunk, z.T - begin);
  const float* g = a.p.g + b * a.p.g_batch + h * a.p.g_head + (begin + at.strip * 16) * a.p.g_time;
  const Kept at_kept(z, true, sizeof(E));
  E* kept = static_cast<E*>(a.kept);
  E* scratch = reinterpret_cast<E*>(memory + at_bytes.scratch) + at.warp * L::levels;
  copy_tile<kChunk, KP>(q, L::LK, HeadRows<const E>(a.p.q, b, begin, group, z.K), steps, z.K, at);
  copy_tile<kChunk, KP>(k, L::LK, HeadRows<const E>(a.p.k, b, begin, group, z.K), steps, z.K, at);
  finish_copies();
  __syncthreads();
  pairs_in_strip<L, P, KP>(q, k, scratch, diagonal, strips, g, a.p.g_time, steps - at.strip * 16, z.K, at);
  __syncthreads();
  if (at.warp < 6) {  // strips (1,0), (2,0), (2,1), (3,0), (3,1), (3,2)
    const int I = at.warp == 0 ? 1 : at.warp < 3 ? 2 : 3, J = at.warp - I * (I - 1) / 2;
    float p[1][2][4];
    clear(p);
    for (int c0 = 0; c0 < KP; c0 += kGroup) {
      float x[8];
      read_group(x, q + I * 16 * L::LK + c0, L::LK, at);
#pragma unroll
      for (int e = 0; e < 8; ++e) x[e] *= strips_between<KP>(strips, J, I, c0 + Element8::column(e, at));
      write_group(x, scratch, L::LG, at);
      __syncwarp();
      multiply<P, Depth::fast, Depth::fast, kGroup>(p, scratch, L::LG, k + J * 16 * L::LK + c0, L::LK, at.lane);
      __syncwarp();
    }
    for_pairs(p, at, [&](int r, int c, float x, float y) {
      store_pair(pairs + (I * 16 + r) * L::LP + J * 16 + c, a.p.scale * x, a.p.scale * y);
    });
  } else {
    for (int i = at.thread - 6 * 32; i < kChunk * 16; i += 64) {
      const int r = i / 16, c = i % 16;
      pairs[r * L::LP + r / 16 * 16 + c] =
          from_float<E>(a.p.scale * (diagonal[r * 16 + c] + diagonal[(kChunk + r) * 16 + c]));
    }
  }
  __syncthreads();

  constexpr int part = 16 / sizeof(E), parts = KP / part, pair_parts = kChunk / part;
  for (int i = at.thread; i < kChunk * parts; i += kBlock) {
    const int r = i / parts, c = i % parts * part, strip = r / 16;
    if (c >= z.key_row()) continue;
    uint4 x = *reinterpret_cast<const uint4*>(q + r * L::LK + c),
          y = *reinterpret_cast<const uint4*>(k + r * L::LK + c);
    E *x_e = reinterpret_cast<E*>(&x), *y_e = reinterpret_cast<E*>(&y);
#pragma unroll
    for (int e = 0; e < part; ++e) {
      x_e[e] = from_float<E>(to_float(x_e[e]) * strips_between<KP>(strips, -1, strip, c + e));
      y_e[e] = from_float<E>(to_float(y_e[e]) * strips_between<KP>(strips, strip, 4, c + e));
    }
    const int64_t to = (chunk_at * kChunk + r) * z.key_row() + c;
    *reinterpret_cast<uint4*>(kept + at_kept.queries + to) = x;
    *reinterpret_cast<uint4*>(kept + at_kept.keys + to) = y;
  }
  for (int i = at.thread; i < kChunk * pair_parts; i += kBlock) {
    const int r = i / pair_parts, c = i % pair_parts * part;
    *reinterpret_cast<uint4*>(kept + at_kept.pairs + (chunk_at * kChunk + r) * kChunk + c) =
        c / 16 <= r / 16 ? *reinterpret_cast<const uint4*>(pairs + r * L::LP + c) : uint4{};
  }
  float* factors = reinterpret_cast<float*>(static_cast<unsigned char*>(a.kept) + at_kept.factors) + chunk_at * z.K;
  for (int c = at.thread; c < z.K; c += kBlock) factors[c] = strips_between<KP>(strips, -1, 4, c);
}

template <Product P, int KP, int VS>
struct WalkLayout {
  using E = Operand<P>;
  static constexpr int LK = leading<E>(KP), LV = leading<E>(VS), LP = leading<E>(kChunk);
  size_t q, k, v, state, pairs, factors, bytes;
  __host__ __device__ WalkLayout() {
    Pieces m;
    q = m.take<E>(kChunk * LK);
    k = m.take<E>(kChunk * LK);
    v = m.take<E>(kChunk * LV);
    state = m.take<E>(KP * LV);
    pairs = m.take<E>(kChunk * LP);
    factors = m.take<float>(KP);
    bytes = m.used;
  }
};

// Outputs and states, over the chunks of one segment, head and slice of V; in the first pass over segments states only.
template <Product P, int KP, int VS>
__global__ void __launch_bounds__(kBlock, P == Product::bf16 && KP <= 128 ? 2 : 1)
    vector_walk(const __grid_constant__ ForwardArguments a) {
  using E = Operand<P>;
  using L = WalkLayout<P, KP, VS>;
  const L at_bytes;
  extern __shared__ __align__(16) unsigned char memory[];
  E *q = reinterpret_cast<E*>(memory + at_bytes.q), *k = reinterpret_cast<E*>(memory + at_bytes.k);
  E *v = reinterpret_cast<E*>(memory + at_bytes.v), *entered = reinterpret_cast<E*>(memory + at_bytes.state);
  E* pairs = reinterpret_cast<E*>(memory + at_bytes.pairs);
  float* factors = reinterpret_cast<float*>(memory + at_bytes.factors);

  const Place at;
  const Sizes& z = a.z;
  const Walk walk(z.segments, z.chunks);
  const int h = walk.pair % z.H, b = walk.pair / z.H;
  const int first = static_cast<int>(blockIdx.y) * VS, slice = min(VS, z.V - first);
  const int i0 = at.strip * 16, c0 = at.half * (VS / 2);
  const int64_t pair = walk.pair, state_size = static_cast<int64_t>(z.K) * z.V;
  const bool outputs = !a.first.states;
  const Kept at_kept(z, true, sizeof(E));
  E* kept = static_cast<E*>(a.kept);
  StateTile<KP, VS> state(at);
  state.read(a.p.initial_state ? a.p.initial_state + walk.index * state_size : nullptr, z.K, z.V, first, at);
  float segment_decay = 1;  // of the channel with the thread's number
  for (int chunk = walk.begin; chunk < walk.end; ++chunk) {
    const int begin = chunk * kChunk, steps = min(kChunk, z.T - begin);
    const int64_t chunk_at = pair * z.chunks + chunk, rows_at = chunk_at * kChunk;
    if (outputs)
      load_tile<kChunk, KP>(q, L::LK, HeadRows<const E>(kept + at_kept.queries + rows_at * z.key_row(), z.key_row()),
                            kChunk, z.key_row(), at);
    load_tile<kChunk, KP>(k, L::LK, HeadRows<const E>(kept + at_kept.keys + rows_at * z.key_row(), z.key_row()), kChunk,
                          z.key_row(), at);
    if (outputs)
      load_tile<kChunk, kChunk>(pairs, L::LP, HeadRows<const E>(kept + at_kept.pairs + rows_at * kChunk, kChunk),
                                kChunk, kChunk, at);
    HeadRows<const E> values(a.p.v, b, begin, h, z.V);
    values.data += first;
    load_tile<kChunk, VS>(v, L::LV, values, steps, slice, at);
    const float* from = reinterpret_cast<const float*>(static_cast<unsigned char*>(a.kept) + at_kept.factors);
    for (int c = at.thread; c < KP; c += kBlock) factors[c] = c < z.K ? from[chunk_at * z.K + c] : 0.f;
    if (outputs) state.to_shared(entered, L::LV, at);
    __syncthreads();
    if (outputs) {
      write_state<KP, VS>(kept + chunk_at * z.state_size(), entered, L::LV, z, first, at);
      float o[1][VS / 16][4];
      clear(o);
      multiply<P, Depth::fast, Depth::slow, KP>(o, q + i0 * L::LK, L::LK, entered + c0, L::LV, at.lane);
      for_pairs(o, at, [&](int, int, float& x, float& y) {
        x *= a.p.scale;
        y *= a.p.scale;
      });
      multiply<P, Depth::fast, Depth::slow, kChunk>(o, pairs + i0 * L::LP, L::LP, v + c0, L::LV, at.lane, i0 + 16);
      HeadRows<E> out(a.out, b, begin, h, z.V);
      out.data += first;
      for_pairs(o, at, [&](int r, int c, float x, float y) {
        if (i0 + r < steps) write_pair(out, i0 + r, c0 + c, slice, x, y);
      });
    } else if (at.thread < KP) {
      segment_decay *= factors[at.thread];
    }
    state.template advance<P>(k, L::LK, v, L::LV, at, [&](int c) { return factors[c]; });
    __syncthreads();
  }
  if (!outputs) {
    state.write(a.first.states + walk.index * state_size, z.K, z.V, first, at);
    if (blockIdx.y == 0 && at.thread < z.K) a.first.decays[walk.index * z.K + at.thread] = segment_decay;
  } else if (a.final_state && walk.end == z.chunks) {
    state.write(a.final_state + pair * state_size, z.K, z.V, first, at);
  }
}

template <Product P, int KP, int VS>
cudaError_t run(const ForwardArguments& a, Target to) {
  if (!a.kept && !to.none) return cudaErrorInvalidValue;
  const dim3 chunks(static_cast<unsigned>(a.z.states()));
  const bool again = !to.none && a.z.segments.count > 1 && !a.first.states;  // the first pass has launched it
  const cudaError_t status =
      again ? cudaSuccess : launch(vector_pairs<P, KP>, chunks, kBlock, PairLayout<P, KP>().bytes, to, a);
  if (status != cudaSuccess) return status;
  const dim3 grid(static_cast<unsigned>(a.z.B * a.z.H * a.z.segments.walked),
                  static_cast<unsigned>((a.z.V + VS - 1) / VS));
  return launch(vector_walk<P, KP, VS>, grid, kBlock, WalkLayout<P, KP, VS>().bytes, to, a);
}

template <Product P>
cudaError_t run_float(const ForwardArguments& a, Target to) {
  return a.z.K <= 128 ? run<P, 128, 64>(a, to) : run<P, 256, 32>(a, to);
}

}  // namespace

cudaError_t vector_forward(const ForwardArguments& a, Target to) {
  if (a.p.precision == Precision::tf32) return run_float<Product::tf32>(a, to);
  if (a.p.precision == Precision::fp32) return run_float<Product::fp32>(a, to);
  constexpr Product P = Product::bf16;
  const bool by_96 = (a.z.V + 95) / 96 * 96 <= (a.z.V + 63) / 64 * 64;
  if (a.z.K <= 64) return by_96 ? run<P, 64, 96>(a, to) : run<P, 64, 64>(a, to);
  if (a.z.K <= 96) return by_96 ? run<P, 96, 96>(a, to) : run<P, 96, 64>(a, to);
  if (a.z.K <= 128) return by_96 ? run<P, 128, 96>(a, to) : run<P, 128, 64>(a, to);
  return run<P, 256, 64>(a, to);
}

}  // namespace sb::cuda::attention
