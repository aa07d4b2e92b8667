// Gradients of the pairs of frames. With dA_ij = d_out_i . v_j and the decay c_ij from j to i:
//   gradient of a score:   sum over the heads of a group of  w_i[level] c_ij dA_ij
//   gradient of a weight:  sum over the j of its level of    c_ij dA_ij q_i . k_j
//   gradient of g_t:       sum over j < t <= i of E_ij = w_i[level] c_ij dA_ij q_i . k_j,
//                          the suffix sum of (sum over row t of E) - (sum over column t of E)
// A block has one tile of pairs and loops over the heads that share its scores, with the next head copied ahead.
#include "kernels/cuda/log_linear_attention_kernels.cuh"

namespace sb::cuda::log_linear {
namespace {

template <class E, int W>
struct Stage {
  E d_out[kTile * leading<E>(W)], v[kTile * leading<E>(W)];
  Factors factors;
};
template <class E, int W>
struct Shared {
  Stage<E, W> stages[2];
  float of_columns[kWarps][kTile];
};

using Pairs = Sum[kTile / 8];

// What a tile's pairs leave for one head, in the registers of a lane
struct Gathered {
  float of_rows[2][kInnerLevels];  // rows r and r + 8; outside the diagonal only the first
  float of_columns[kTile / 4];     // columns 8 n + 2 pair + (0, 1)
};

// Adds to the gradients of the scores. gradient: dA
template <class E>
__device__ inline void gather_diagonal(Pairs& of_scores, Gathered& to, const Pairs& gradient, const Pairs& scores,
                                       const Factors& f, const Place& at) {
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int half = e / 2, i = at.strip * 16 + at.row + half * 8, j = n * 8 + at.pair * 2 + e % 2;
      const int level = Factors::level(i, j);
      const float x = j <= i ? gradient[n][e] * f.template decay<E>(i, j) : 0.f;
      const float weight = j <= i ? f.weight[level][i] : 0.f, y = x * scores[n][e];
      of_scores[n][e] = fmaf(x, weight, of_scores[n][e]);
      if (i != j) to.of_columns[2 * n + e % 2] = fmaf(y, weight, to.of_columns[2 * n + e % 2]);
      const int blocks = n ^ (at.strip * 2 + half);  // of 8 frames; the same for the whole warp
      if (blocks == 0) {
#pragma unroll
        for (int l = 0; l < 4; ++l) to.of_rows[half][l] += level == l ? y : 0.f;
      } else if (blocks == 1) {
        to.of_rows[half][4] += y;
      } else if (blocks < 4) {
        to.of_rows[half][5] += y;
      } else {
        to.of_rows[half][6] += y;
      }
    }
  }
}

__device__ inline void gather(Pairs& of_scores, Gathered& to, const Pairs& gradient, const Pairs& scores,
                              const Factors& f, float between, const Place& at) {
  float decay[2], weight[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = at.strip * 16 + at.row + half * 8;
    decay[half] = between * f.since[row];
    weight[half] = decay[half] * f.weight[0][row];
  }
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n) {
    const float2 until = load_pair(f.until + n * 8 + at.pair * 2);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float x = gradient[n][e] * (e % 2 ? until.y : until.x), y = x * scores[n][e];
      of_scores[n][e] = fmaf(x, weight[e / 2], of_scores[n][e]);
      to.of_rows[e / 2][0] += y;
      to.of_columns[2 * n + e % 2] = fmaf(y, weight[e / 2], to.of_columns[2 * n + e % 2]);
    }
  }
  to.of_rows[0][0] *= decay[0];
  to.of_rows[1][0] *= decay[1];
}

// Sums of a row over its four lanes, to one level of a tile's sums
__device__ inline void store_rows(float* to, float x, int row, const Place& at) {
  x = sum_lanes(x, 1, 4);
  if (at.pair == 0) to[row] = x;
}

// Grid: the tiles I = J, or those with I > J, of every sequence and group
template <Product P, int W, bool Diagonal>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<Operand<P>>)
    pairs_kernel(const __grid_constant__ Arguments a, const __grid_constant__ LogLinearGradients d, int slices) {
  using E = Operand<P>;
  constexpr int ld = leading<E>(W);
  extern __shared__ __align__(16) unsigned char log_linear_memory[];
  auto& shared = *reinterpret_cast<Shared<E, W>*>(log_linear_memory);
  const Place at;
  const Sizes& z = a.z;
  const int blocks = Diagonal ? z.tiles : z.pairs - z.tiles;  // of a sequence and group
  const int block = static_cast<int>(blockIdx.x) % blocks, group = static_cast<int>(blockIdx.x) / blocks;
  const int b = group / z.G, first_head = group % z.G * z.per_group, r = at.strip * 16 + at.row;
  int I = block, J = block;
  if constexpr (!Diagonal) {
    for (I = 1; pair_of(I, 0) <= block;) ++I;
    J = block - pair_of(I - 1, 0);
  }
  const int pair = pair_of(I, J);

  float* const tile = a.w.scores + (static_cast<int64_t>(group) * z.pairs + pair) * kPairs;
  Pairs scores, of_scores;
  float gradient[1][kTile / 8][4];
  clear(of_scores), clear(gradient);
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      const float2 x = load_pair(tile + (r + e / 2 * 8) * kTile + n * 8 + at.pair * 2);
      scores[n][e] = x.x, scores[n][e + 1] = x.y;
    }
  const auto head_of = [&](int n) { return static_cast<int64_t>(b) * z.H + first_head + n / slices; };
  const auto fetch = [&](int n) {
    Stage<E, W>& stage = shared.stages[n % 2];
    const int h = first_head + n / slices, first = n % slices * W;
    copy_rows<W>(stage.d_out, HeadRows<const E>(d.d_out, b, I * kTile, h, z.V), first, min(kTile, z.T - I * kTile), z.V,
                 at);
    copy_rows<W>(stage.v, HeadRows<const E>(a.p.v, b, J * kTile, h, z.V), first, min(kTile, z.T - J * kTile), z.V, at);
    if (n % slices == slices - 1) stage.factors.copy(a, head_of(n), I, J, at.thread);
  };
  const int count = z.per_group * slices;
  fetch(0);
  copy_commit();
  for (int n = 0; n < count; ++n) {
    if (n + 1 < count) fetch(n + 1);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    const Stage<E, W>& stage = shared.stages[n % 2];
    const bool whole = n % slices == slices - 1;  // dA is complete
    const int64_t head = head_of(n);
    multiply<P, Depth::fast, Depth::fast, W>(gradient, stage.d_out + at.strip * 16 * ld, ld, stage.v, ld, at.lane);
    if (whole) {
      Gathered sums = {};
      if constexpr (Diagonal) {
        gather_diagonal<E>(of_scores, sums, gradient[0], scores, stage.factors, at);
        float* const to = a.w.of_levels + (head * z.tiles + I) * kInnerLevels * kTile;
#pragma unroll
        for (int l = 0; l < kInnerLevels; ++l)
#pragma unroll
          for (int half = 0; half < 2; ++half) store_rows(to + l * kTile, sums.of_rows[half][l], r + 8 * half, at);
      } else {
        gather(of_scores, sums, gradient[0], scores, stage.factors, decay_between(a, head, I, J), at);
        float* const to = a.w.of_rows + (head * z.pairs + pair) * kTile;
        store_rows(to, sums.of_rows[0][0], r, at);
        store_rows(to, sums.of_rows[1][0], r + 8, at);
      }
      clear(gradient);
      fold_sums<8, 16>(sums.of_columns, at.lane);
      fold_sums<4, 8>(sums.of_columns, at.lane);
      fold_sums<2, 4>(sums.of_columns, at.lane);
      const int eight = at.lane / 16 * 4 + at.lane / 8 % 2 * 2 + at.lane / 4 % 2;
      store_pair(shared.of_columns[at.warp] + eight * 8 + at.pair * 2, sums.of_columns[0], sums.of_columns[1]);
    }
    __syncthreads();
    if (whole && at.thread < kTile) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) sum += shared.of_columns[w][at.thread];
      a.w.of_columns[(head * z.pairs + pair) * kTile + at.thread] = sum;
    }
  }
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; e += 2)
      store_pair(tile + (r + e / 2 * 8) * kTile + n * 8 + at.pair * 2, of_scores[n][e], of_scores[n][e + 1]);
}

template <Product P, int W>
cudaError_t run(const Arguments& a, const LogLinearGradients& d, Target to) {
  const auto pass = [&](auto kernel, int tiles) {
    const auto blocks = static_cast<unsigned>(a.z.B) * static_cast<unsigned>(a.z.G) * static_cast<unsigned>(tiles);
    return launch(kernel, blocks, kThreads, sizeof(Shared<Operand<P>, W>), to, a, d, (a.z.V + W - 1) / W);
  };
  const cudaError_t status = pass(pairs_kernel<P, W, true>, a.z.tiles);
  if (status != cudaSuccess || a.z.tiles == 1) return status;
  return pass(pairs_kernel<P, W, false>, a.z.pairs - a.z.tiles);
}

}  // namespace

cudaError_t pair_gradients(const Arguments& a, const LogLinearGradients& d, Target to) {
  if (a.p.precision == Precision::tf32) return run<Product::tf32, 64>(a, d, to);
  if (a.p.precision == Precision::fp32) return run<Product::fp32, 64>(a, d, to);
  const int slice = slice_of(a.z.V, a.p.precision);
  if (slice == 64) return run<Product::bf16, 64>(a, d, to);
  return slice == 80 ? run<Product::bf16, 80>(a, d, to) : run<Product::bf16, 96>(a, d, to);
}

}  // namespace sb::cuda::log_linear
