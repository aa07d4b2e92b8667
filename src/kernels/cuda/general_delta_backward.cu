// Backward loop over the chunks: computes Z, dV and the gradient of every state (formulas: general_delta_problem.cuh).
// Blocks and warps are as in forward; each warp keeps dS^T of its 16 columns of V in registers. First: the first pass
// over the segments, which finds only the gradients of states.
#include "kernels/cuda/general_delta_walk.cuh"

namespace sb::cuda {
namespace {

template <class E, int KeyTile, int Sides, bool First>
using Loads = WalkLoads<E, KeyTile, Sides, First || Sides == 1 ? 2 : 3, 2>;

template <class E, int KeyTile, int Sides, bool First>
__global__ void __launch_bounds__(32 * most_walk_warps(sizeof(E) == 2, KeyTile))
    general_backward(const __grid_constant__ GeneralProblem p, View d_out, View dv, int stages) {
  using Tiles = typename Loads<E, KeyTile, Sides, First>::Tiles;
  constexpr int ld = Tiles::key_ld, steps = kRows / Left<E>::depth;
  const int warp = threadIdx.x / 32, slice = 16 * p.warps * blockIdx.y, column = slice + 16 * warp;
  const bool exact = p.exact;
  const Walk walk(p.segments, p.chunks);
  const size_t end_at = static_cast<size_t>(walk.index) * p.K * p.V;
  constexpr WalkOrder order =
      Sides == 2 ? WalkOrder{{rows_w, rows_k, rows_q, rows_e}, {matrix_q, matrix_n, matrix_p, matrix_e}}
                 : WalkOrder{{rows_k, rows_k, rows_q, rows_e}, {0, 1}};
  const Loads<E, KeyTile, Sides, First> loads{p, order, d_out, walk, slice, stages};

  Sum gradient[KeyTile / 8];  // dS^T: row a column of V
  each_of_state<KeyTile / 8>(column, [&](int i, int e, int key, int value) {
    const bool given = p.d.d_final_state && value < p.V && key < p.K;
    gradient[i][e] = given ? p.d.d_final_state[end_at + static_cast<size_t>(key) * p.V + value] : 0.f;
  });
  loads.begin(walk.end - 1);
  for (int chunk = walk.end - 1; chunk >= walk.begin; --chunk) {
    const Chunk c(p, walk.pair, chunk);
    const Tiles s = loads.start(chunk, chunk - 1);
    E* const staged = s.values + 16 * warp;  // once the warp's columns of dO are read, they carry its results to memory
    Left<E> d[steps], z[steps];
    load_columns(d, staged, s.value_ld);
    if constexpr (!First)
      store_state(gradient, staged, s.value_ld, static_cast<E*>(p.d_states) + c.index * KeyTile * p.values + column,
                  p.values);
    Sum sums[kRows / 8];
    // Z^T = -(dS^T Wd^T + dO^T Q) N or, with one side, -(dS^T Kd^T + dO^T P) N
    clear(sums);
    multiply_sums<false>(sums, gradient, s.key(0), ld, exact);
    multiply_all<true, Blocks::k_from_n>(sums, d, s.matrix(0), kPairLd, exact);
    negate(sums);
    from_all_sums(z, sums);
    clear(sums);
    multiply_all<true, Blocks::k_from_n>(sums, z, s.matrix(1), kPairLd, exact);
    from_all_sums(z, sums);
    if constexpr (!First && Sides == 2) {
      __syncwarp();
      store_columns_of(z, staged, s.value_ld);
      __syncwarp();
      store_columns(staged, s.value_ld, static_cast<E*>(p.solved) + c.index * kRows * p.values + column, p.values,
                    kRows);

      // dV^T = dS^T Kd^T + dO^T P + Z^T E
      loads.phase(chunk, chunk - 1, 1);
      clear(sums);
      multiply_sums<false>(sums, gradient, s.key(1), ld, exact);
      multiply_all<true, Blocks::k_from_n>(sums, d, s.matrix(2), kPairLd, exact);
      multiply_all<true, Blocks::k_from_n>(sums, z, s.matrix(3), kPairLd, exact);
      __syncwarp();
      Left<E> x[steps];
      from_all_sums(x, sums);
      store_columns_of(x, staged, s.value_ld);
      __syncwarp();
      store_rows(staged, s.value_ld, dv, c, tokens_only(), column, p.V);
    }

    // dS^T <- e^b_end dS^T + dO^T Qd + Z^T Ed
    loads.phase(chunk, chunk - 1, 2);
    scale_columns(gradient, s.factors);
    multiply_all<true>(gradient, d, s.key(2), ld, exact);
    multiply_all<true>(gradient, z, s.key(3), ld, exact);
    if constexpr (!First && Sides == 1) {  // dV^T = -Z^T
      Left<E> x[steps];
#pragma unroll
      for (int i = 0; i < steps; ++i) x[i] = negated(z[i]);
      __syncwarp();
      store_columns_of(x, staged, s.value_ld);
      __syncwarp();
      store_rows(staged, s.value_ld, dv, c, tokens_only(), column, p.V);
    }
    loads.finish(chunk - 1);
  }
  if (!First && (!p.d.d_initial_state || walk.begin > 0)) return;
  float* const start = First ? p.d_ends + end_at : p.d.d_initial_state + static_cast<size_t>(walk.pair) * p.K * p.V;
  each_of_state<KeyTile / 8>(column, [&](int i, int e, int key, int value) {
    if (value < p.V && key < p.K) start[static_cast<size_t>(key) * p.V + value] = gradient[i][e];
  });
}

struct Launch {
  const GeneralProblem& p;
  Target to;
  template <class E, int KeyTile, int Sides>
  cudaError_t operator()() const {
    return p.first ? run<E, KeyTile, Sides, true>() : run<E, KeyTile, Sides, false>();
  }
  template <class E, int KeyTile, int Sides, bool First>
  cudaError_t run() const {
    using Tiles = typename Loads<E, KeyTile, Sides, First>::Tiles;
    const auto kernel = general_backward<E, KeyTile, Sides, First>;
    const int stages = Tiles::stages(reinterpret_cast<const void*>(kernel), p.warps);
    return launch(kernel, dim3(p.pairs * p.segments.walked, p.slices), 32 * p.warps, stages * Tiles::bytes(p.warps), to,
                  p, view_of<E>(p.d.d_out), view_of<E>(p.d.dv), stages);
  }
};

}  // namespace

cudaError_t launch_general_backward(const GeneralProblem& p, Target to) {
  return dispatch_walk(p, Launch{p, to});
}

}  // namespace sb::cuda
