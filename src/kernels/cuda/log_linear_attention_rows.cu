// Products of the pairs of frames with rows: of the weighted pairs A with v and of A^T with d_out, of the gradients of
// the scores with k and, transposed, with q. A block has one tile of output rows and loops over the tiles of pairs
// beside it, with the next one copied ahead.
#include "kernels/cuda/log_linear_attention_kernels.cuh"

namespace sb::cuda::log_linear {
namespace {

// Row stride of a tile of pairs: no bank conflicts when rows, or columns, are read
template <bool Transposed>
constexpr int kScoreRow = kTile + (Transposed ? 4 : 8);

template <class E, int W, bool Transposed>
struct Stage {
  float scores[kTile * kScoreRow<Transposed>];
  E x[kTile * leading<E>(W)];
  Factors factors;
};

__device__ inline void copy_scores(float* tile, int ld, const float* from, int thread) {
#pragma unroll
  for (int i = thread; i < kPairs / 4; i += kThreads) copy_async(tile + i / 16 * ld + i % 16 * 4, from + 4 * i, 16);
}

// Multiplies the warp's pairs by their weights. Transposed: its rows are columns of the pairs.
template <class E, bool Transposed>
__device__ inline void weigh(Sum (&x)[kTile / 8], const Factors& f, bool diagonal, float between, const Place& at) {
  const int r = at.strip * 16 + at.row;
  if (diagonal) {
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = r + e / 2 * 8, column = n * 8 + at.pair * 2 + e % 2;
        const int i = Transposed ? column : row, j = Transposed ? row : column;
        x[n][e] = j <= i ? x[n][e] * (f.weight[Factors::level(i, j)][i] * f.template decay<E>(i, j)) : 0.f;
      }
    return;
  }
  const auto of_row = [&](int row) { return between * (Transposed ? f.until[row] : f.weight[0][row] * f.since[row]); };
  const float high = of_row(r), low = of_row(r + 8);
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n) {
    const int column = n * 8 + at.pair * 2;
    float2 c = load_pair((Transposed ? f.since : f.until) + column);
    if constexpr (Transposed) {
      const float2 weight = load_pair(f.weight[0] + column);
      c.x *= weight.x, c.y *= weight.y;
    }
    x[n][0] *= high * c.x, x[n][1] *= high * c.y;
    x[n][2] *= low * c.x, x[n][3] *= low * c.y;
  }
}

template <class E, int W, bool Transposed, bool Weighted>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<E>)
    sum_tiles(const __grid_constant__ Arguments a, const __grid_constant__ ConstRows x,
              const __grid_constant__ Rows out, int heads, int width) {
  using S = Stage<E, W, Transposed>;
  constexpr int ld = kScoreRow<Transposed>;
  extern __shared__ __align__(16) unsigned char log_linear_memory[];
  S* const stages = reinterpret_cast<S*>(log_linear_memory);
  const Place at;
  const Sizes& z = a.z;
  const int tile = static_cast<int>(blockIdx.x) % z.tiles, head = static_cast<int>(blockIdx.x) / z.tiles;
  const int b = head / heads, h = head % heads, first = static_cast<int>(blockIdx.y) * W;
  const int64_t group = Weighted ? static_cast<int64_t>(b) * z.G + h / z.per_group : head;
  const int count = Transposed ? z.tiles - tile : tile + 1;
  const auto beside = [&](int n) { return Transposed ? tile + n : n; };
  const auto fetch = [&](int n) {
    S& stage = stages[n % 2];
    const int other = beside(n), I = Transposed ? other : tile, J = Transposed ? tile : other;
    copy_scores(stage.scores, ld, a.w.scores + (group * z.pairs + pair_of(I, J)) * kPairs, at.thread);
    copy_rows<W>(stage.x, HeadRows<const E>(x, b, other * kTile, h, width), first, min(kTile, z.T - other * kTile),
                 width, at);
    if constexpr (Weighted) stage.factors.copy(a, head, I, J, at.thread);
  };
  Sum sums[W / 8];
  clear(sums);
  fetch(0);
  copy_commit();
  for (int n = 0; n < count; ++n) {
    if (n + 1 < count) fetch(n + 1);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    const S& stage = stages[n % 2];
    const int r = at.strip * 16 + at.row;
    Sum pairs[kTile / 8];
#pragma unroll
    for (int i = 0; i < kTile / 8; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = r + e / 2 * 8, column = i * 8 + at.pair * 2 + e % 2;
        pairs[i][e] = stage.scores[Transposed ? column * ld + row : row * ld + column];
      }
    if constexpr (Weighted) {
      const int other = beside(n);
      const float between =
          other == tile ? 1.f : decay_between(a, head, Transposed ? other : tile, Transposed ? tile : other);
      weigh<E, Transposed>(pairs, stage.factors, other == tile, between, at);
    }
    multiply_sums<true>(sums, pairs, stage.x, leading<E>(W), a.p.precision == Precision::fp32);
    __syncthreads();
  }
  HeadRows<E> to(out, b, tile * kTile, h, width);
  to.wide = to.stride % 2 == 0 && reinterpret_cast<uintptr_t>(to.data) % (2 * sizeof(E)) == 0 && width % 2 == 0;
  to.data += first;
#pragma unroll
  for (int n = 0; n < W / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      const int row = at.strip * 16 + at.row + e / 2 * 8;
      if (tile * kTile + row < z.T) write_pair(to, row, n * 8 + at.pair * 2, width - first, sums[n][e], sums[n][e + 1]);
    }
}

template <bool Transposed, bool Weighted, class E, int W>
cudaError_t run(const Arguments& a, const ConstRows& x, const Rows& out, int heads, int width, Target to) {
  const dim3 grid(static_cast<unsigned>(a.z.B) * static_cast<unsigned>(heads) * static_cast<unsigned>(a.z.tiles),
                  static_cast<unsigned>((width + W - 1) / W));
  return launch(sum_tiles<E, W, Transposed, Weighted>, grid, kThreads, 2 * sizeof(Stage<E, W, Transposed>), to, a, x,
                out, heads, width);
}
template <bool Transposed, bool Weighted>
cudaError_t run(const Arguments& a, const ConstRows& x, const Rows& out, int heads, int width, Target to) {
  if (a.p.precision != Precision::bf16) return run<Transposed, Weighted, float, 64>(a, x, out, heads, width, to);
  const int slice = slice_of(width, a.p.precision);
  if (slice == 64) return run<Transposed, Weighted, bf16, 64>(a, x, out, heads, width, to);
  if (slice == 80) return run<Transposed, Weighted, bf16, 80>(a, x, out, heads, width, to);
  return run<Transposed, Weighted, bf16, 96>(a, x, out, heads, width, to);
}

}  // namespace

cudaError_t read_values(const Arguments& a, const Rows& out, Target to) {
  return run<false, true>(a, a.p.v, out, a.z.H, a.z.V, to);
}
cudaError_t value_gradients(const Arguments& a, const LogLinearGradients& d, Target to) {
  return run<true, true>(a, d.d_out, d.dv, a.z.H, a.z.V, to);
}
cudaError_t query_and_key_gradients(const Arguments& a, const LogLinearGradients& d, Target to) {
  const cudaError_t status = run<false, false>(a, a.p.k, d.dq, a.z.G, a.z.K, to);
  return status == cudaSuccess ? run<true, false>(a, a.p.q, d.dk, a.z.G, a.z.K, to) : status;
}

}  // namespace sb::cuda::log_linear
