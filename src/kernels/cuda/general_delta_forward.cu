// Forward loop over the chunks (formulas: general_delta_problem.cuh). One block per (sequence, head) pair, segment and
// slice of V. Each warp keeps S^T of its 16 columns in registers. First: the first pass over the segments, without
// outputs. Its warps with columns of the transition have no values.
#include "kernels/cuda/general_delta_walk.cuh"

namespace sb::cuda {
namespace {

template <class E, int KeyTile, int Sides, bool First>
using Loads = WalkLoads<E, KeyTile, Sides, First ? 2 : 3, Sides>;

template <class E, int KeyTile, int Sides, bool First>
__global__ void __launch_bounds__(32 * most_walk_warps(sizeof(E) == 2, KeyTile, First))
    general_forward(const __grid_constant__ GeneralProblem p, View values, View out, int stages) {
  using Tiles = typename Loads<E, KeyTile, Sides, First>::Tiles;
  constexpr int depth = Left<E>::depth, ld = Tiles::key_ld, steps = kRows / depth;
  const int warp = threadIdx.x / 32, slice = 16 * p.warps * blockIdx.y, column = slice + 16 * warp;
  const bool exact = p.exact, valued = !First || column < p.transition;
  const Walk walk(p.segments, p.chunks);
  const size_t start_at = static_cast<size_t>(walk.index) * p.K * p.V;
  constexpr WalkOrder order =
      Sides == 2 ? WalkOrder{{rows_e, rows_q, rows_k, rows_w}, {matrix_e, matrix_n, matrix_p, matrix_q}}
                 : WalkOrder{{rows_e, rows_q, rows_k}, {1, 0}};
  const Loads<E, KeyTile, Sides, First> loads{p, order, values, walk, slice, stages};

  Sum state[KeyTile / 8];  // S^T: row a column of V
  each_of_state<KeyTile / 8>(column, [&](int i, int e, int key, int value) {
    const bool given = p.in.initial_state && value < p.V && key < p.K;
    const float identity = First && key < p.K && value - p.transition == key ? 1.f : 0.f;
    state[i][e] = given ? p.in.initial_state[start_at + static_cast<size_t>(key) * p.V + value] : identity;
  });
  loads.begin(walk.begin);
  for (int chunk = walk.begin; chunk < walk.end; ++chunk) {
    const Chunk c(p, walk.pair, chunk);
    const Tiles s = loads.start(chunk, chunk + 1);
    E* const staged = s.values + 16 * warp;  // once the warp's columns of V are read, they carry its results to memory
    Left<E> v[steps], r[steps];
    load_columns(v, staged, s.value_ld);
    if (!First && p.states)
      store_state(state, staged, s.value_ld, static_cast<E*>(p.states) + c.index * KeyTile * p.values + column,
                  p.values);
    {  // R^T = -(S^T Ed^T + V^T E^T) N^T or, with one side, D^T = (V^T - S^T Ed^T) N^T
      Sum sums[kRows / 8];
      clear(sums);
      multiply_sums<false>(sums, state, s.key(0), ld, exact);
      if constexpr (Sides == 2) {
        if (valued) multiply_all<false, Blocks::k_up_to_n>(sums, v, s.matrix(0), kPairLd, exact);
        negate(sums);
      } else {
        subtract_from(sums, v);
      }
      from_all_sums(r, sums);
      clear(sums);
      multiply_all<false, Blocks::k_up_to_n>(sums, r, s.matrix(Sides - 1), kPairLd, exact);
      from_all_sums(r, sums);
    }
    if (!First && p.erased) {
      __syncwarp();
      store_columns_of(r, staged, s.value_ld);
      __syncwarp();
      store_columns(staged, s.value_ld, static_cast<E*>(p.erased) + c.index * kRows * p.values + column, p.values,
                    kRows);
    }

    // O^T = S^T Qd^T + V^T P^T + R^T Q^T, or S^T Qd^T + D^T P^T, in two halves to spare registers
    if constexpr (!First) {
      loads.phase(chunk, chunk + 1, 1);
      __syncwarp();
#pragma unroll
      for (int begin = 0; begin < kRows; begin += 32) {
        Sum sums[4];
        clear(sums);
        multiply_sums<false>(sums, state, s.key(1) + begin * ld, ld, exact);
#pragma unroll
        for (int i = 0; i < steps; ++i) {
          if (i * depth >= begin + 32) continue;  // P and Q are lower triangular
          if constexpr (Sides == 2)
            multiply_step<false>(sums, v[i], i * depth, s.matrix(2) + begin * kPairLd, kPairLd, exact);
          multiply_step<false>(sums, r[i], i * depth, s.matrix(2 * Sides - 1) + begin * kPairLd, kPairLd, exact);
        }
        Left<E> o[32 / depth];
        from_all_sums(o, sums);
        store_columns_of(o, staged + begin * s.value_ld, s.value_ld);
      }
      __syncwarp();
      store_rows(staged, s.value_ld, out, c, tokens_only(), column, p.V);
    }

    // S^T <- e^b_end S^T + V^T Kd + R^T Wd, or e^b_end S^T + D^T Kd
    loads.phase(chunk, chunk + 1, 2);
    scale_columns(state, s.factors);
    if constexpr (Sides == 2) {
      if (valued) multiply_all<true>(state, v, s.key(2), ld, exact);
    }
    multiply_all<true>(state, r, s.key(1 + Sides), ld, exact);
    loads.finish(chunk + 1);
  }
  if (!First && (!p.final_state || walk.end < p.chunks)) return;
  const int width = First ? p.added_columns : p.V;
  float* const end = First ? p.added + static_cast<size_t>(walk.index) * p.K * width
                           : p.final_state + static_cast<size_t>(walk.pair) * p.K * width;
  each_of_state<KeyTile / 8>(column, [&](int i, int e, int key, int value) {
    if (value < width && key < p.K) end[static_cast<size_t>(key) * width + value] = state[i][e];
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
    const auto kernel = general_forward<E, KeyTile, Sides, First>;
    const int stages = Tiles::stages(reinterpret_cast<const void*>(kernel), p.warps);
    return launch(kernel, dim3(p.pairs * p.segments.walked, p.slices), 32 * p.warps, stages * Tiles::bytes(p.warps), to,
                  p, view_of<E>(p.in.v), view_of<E>(p.out), stages);
  }
};

}  // namespace

cudaError_t launch_general_forward(const GeneralProblem& p, Target to) {
  return dispatch_walk(p, Launch{p, to});
}

}  // namespace sb::cuda
