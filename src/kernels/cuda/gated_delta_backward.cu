// Backward loop over the chunks: computes dV, dbeta and the gradient of every state (formulas:
// gated_delta_problem.cuh). Blocks and warps are as in forward; each warp keeps dS^T of its 16 columns of V in
// registers.
#include "kernels/cuda/gated_delta_problem.cuh"

namespace sb::cuda {
namespace {

template <class E, int KeyTile, int Tokens>
struct Stage {
  static constexpr int key_ld = KeyTile + kPad;
  E *k, *q, *inverse, *P, *d_out, *corrected;
  float* gates;

  __host__ __device__ static constexpr int value_ld(int warps) { return 16 * warps + kPad; }
  __host__ __device__ static constexpr size_t bytes(int warps) {
    return sizeof(float) * kGates + sizeof(E) * (kRows + Tokens) * (key_ld + kPairLd + value_ld(warps));
  }
  __device__ Stage(char* memory, int warps) {
    gates = reinterpret_cast<float*>(memory);
    k = reinterpret_cast<E*>(gates + kGates);
    q = k + kRows * key_ld;
    inverse = q + Tokens * key_ld;
    P = inverse + kRows * kPairLd;
    d_out = P + Tokens * kPairLd;
    corrected = d_out + Tokens * value_ld(warps);
  }
  __device__ void load(const Problem& p, const Chunk& c, int column, int warps) const {
    const TileWalk<E> keys(KeyTile), pairs(kRows), values(16 * warps);
    load_rows(k, key_ld, p.k, c, factors(p), kRows, 0, keys, p.K);
    load_rows(q, key_ld, p.q, c, tokens_only(), Tokens, 0, keys, p.K);
    load_tile(inverse, kPairLd, pairs_of<E>(p.inverse, c), kRows, kRows, pairs);
    load_tile(P, kPairLd, pairs_of<E>(p.P, c), kRows, Tokens, pairs);
    load_tile(gates, kRows, gates_of(p, c), kRows, gate_count, TileWalk<float>(kRows));
    load_rows(d_out, value_ld(warps), p.d_out, c, tokens_only(), Tokens, column, values, p.V);
    if (!p.first) {
      load_tile(corrected, value_ld(warps), static_cast<E*>(p.corrected) + c.index * kRows * p.values + column,
                p.values, kRows, values);
    }
    copy_commit();
  }
};

// x y for eight rows of the chunk, added up over the warp's 16 columns of V, times a factor of the row
__device__ inline void sum_over_values(const Sum& x, const Sum& y, const float* factor, float* to) {
  float even = x[0] * y[0] + x[2] * y[2], odd = x[1] * y[1] + x[3] * y[3];
#pragma unroll
  for (int step = 4; step < 32; step *= 2) {
    even += __shfl_xor_sync(~0u, even, step);
    odd += __shfl_xor_sync(~0u, odd, step);
  }
  const int row = 2 * (lane_id() & 3);
  if (lane_id() < 4) store_pair(to + row, even * factor[row], odd * factor[row + 1]);
}

template <class E, int KeyTile, int Tokens>
__global__ void __launch_bounds__(32 * most_warps(sizeof(E) == 2, KeyTile), backward_blocks(sizeof(E) == 2, KeyTile))
    backward(const Problem p) {
  using Tiles = Stage<E, KeyTile, Tokens>;
  constexpr int depth = Left<E>::depth, tiles = depth / 8, ld = Tiles::key_ld, steps = kRows / depth;
  const int warps = p.warps, warp = threadIdx.x / 32, t = lane_id() & 3;
  const int slice = 16 * warps * blockIdx.y, column = slice + 16 * warp, value_ld = Tiles::value_ld(warps);
  const bool exact = p.exact;
  const Walk walk(p.segments, p.chunks);
  const size_t end_at = static_cast<size_t>(walk.index) * p.K * p.V;
  float* const dbeta = reinterpret_cast<float*>(shared_memory());  // [warps][kRows]
  char* const stages = shared_memory() + sizeof(float) * warps * kRows;

  Sum d_state[KeyTile / 8];  // dS^T: row a column of V
  E* const d_states = static_cast<E*>(p.d_states) + column;
  each_of_state<KeyTile / 8>(column, [&](int i, int e, int key, int value) {
    const bool given = p.d_final_state && value < p.V && key < p.K;
    d_state[i][e] = given ? p.d_final_state[end_at + static_cast<size_t>(key) * p.V + value] : 0.f;
    if (!p.first) {
      d_states[(Chunk(p, walk.pair, walk.end - 1).index * KeyTile + key) * p.values + value - column] =
          E(d_state[i][e]);
    }
  });
  const auto stage = [&](int chunk) {
    return Tiles(stages + (p.stages == 2 ? chunk & 1 : 0) * Tiles::bytes(warps), warps);
  };

  stage(walk.end - 1).load(p, Chunk(p, walk.pair, walk.end - 1), slice, warps);
  for (int chunk = walk.end - 1; chunk >= walk.begin; --chunk) {
    const Chunk c(p, walk.pair, chunk);
    const Tiles s = stage(chunk);
    if (p.stages == 2 && chunk > walk.begin) {
      stage(chunk - 1).load(p, Chunk(p, walk.pair, chunk - 1), slice, warps);
      copy_wait<1>();
    } else {
      copy_wait<0>();
    }
    __syncthreads();

    Left<E> a_read[steps];                      // (-c dV)^T
    E* const staged = s.corrected + 16 * warp;  // once the warp's V' is read, it carries results to memory
    {
      // dV'^T = u (dS^T K^T) + dO^T P, then dV^T = dV'^T N
      Sum sums[kRows / 8];
      clear(sums);
      multiply_sums<false>(sums, d_state, s.k, ld, exact);
      scale_columns(sums, s.gates + until_end * kRows);
#pragma unroll
      for (int i = 0; i < Tokens / depth; ++i) {
        Left<E> a;
        load_transposed(a, s.d_out + i * depth * value_ld + 16 * warp, value_ld);
        if (Tokens == kRows && p.n == 1) {
          multiply_step<true, Blocks::k_from_n>(sums, a, i * depth, s.P, kPairLd, exact);
        } else {
          multiply_step<true>(sums, a, i * depth, s.P, kPairLd, exact);
        }
      }
#pragma unroll
      for (int i = 0; i < steps; ++i) from_sums(a_read[i], sums + i * tiles);
      clear(sums);
      multiply_all<true, Blocks::k_from_n>(sums, a_read, s.inverse, kPairLd, exact);

      if (!p.first) {
#pragma unroll
        for (int i = 0; i < steps; ++i) {
          Left<E> a;
          Sum v[tiles];
          load_transposed(a, staged + i * depth * value_ld, value_ld);
          to_sums(v, a);
#pragma unroll
          for (int j = 0; j < tiles; ++j) {
            const int row = i * depth + 8 * j;
            sum_over_values(v[j], sums[row / 8], s.gates + beta_inverse_squared * kRows + row,
                            dbeta + warp * kRows + row);
          }
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < steps; ++i) {
          Left<E> dv;
          from_sums(dv, sums + i * tiles);
          store_transposed(dv, staged + i * depth * value_ld, value_ld);
        }
      }
      scale_columns(sums, s.gates + since_start * kRows);
#pragma unroll
      for (int i = 0; i < kRows / 8; ++i) {
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[i][e] = -sums[i][e];
      }
#pragma unroll
      for (int i = 0; i < steps; ++i) from_sums(a_read[i], sums + i * tiles);
      if (!p.first) {
        __syncwarp();
        store_rows(staged, value_ld, p.dv, c, factors(p), column, p.V);
      }
    }

    // dS^T <- c_last dS^T + (scale c dO)^T Q - (c dV)^T K
    const float* since = s.gates + since_start * kRows;
    const float decay = since[kRows - 1];
#pragma unroll
    for (int i = 0; i < KeyTile / 8; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) d_state[i][e] *= decay;
    }
    multiply_all<true>(d_state, a_read, s.k, ld, exact);
#pragma unroll
    for (int i = 0; i < Tokens / depth; ++i) {
      Left<E> a;
      Sum x[tiles];
      load_transposed(a, s.d_out + i * depth * value_ld + 16 * warp, value_ld);
      to_sums(x, a);
#pragma unroll
      for (int j = 0; j < tiles; ++j) {
        const int row = min((i * depth + 8 * j + 2 * t) * p.n, kRows - 1), next = min(row + p.n, kRows - 1);
        x[j][0] *= p.scale * since[row], x[j][2] *= p.scale * since[row];
        x[j][1] *= p.scale * since[next], x[j][3] *= p.scale * since[next];
      }
      from_sums(a, x);
      multiply_step<true>(d_state, a, i * depth, s.q, ld, exact);
    }
    if (chunk > walk.begin && !p.first) {
      store_state(d_state, staged, value_ld, d_states + (c.index - 1) * KeyTile * p.values, p.values);
    }
    __syncthreads();
    if (p.stages == 1 && chunk > walk.begin) stage(0).load(p, Chunk(p, walk.pair, chunk - 1), slice, warps);
    if (p.first) continue;
    // A block may have fewer threads than a chunk has rows.
    for (int row = threadIdx.x; row < kRows; row += blockDim.x) {
      const int token = factors(p).token(row);
      float sum = 0;
      for (int w = 0; w < warps; ++w) sum += dbeta[w * kRows + row];
      if (p.slices > 1) {
        p.dbeta_slices[(static_cast<int64_t>(blockIdx.y) * p.pairs * p.chunks + c.index) * kRows + row] = sum;
      } else if (token < c.tokens) {
        row_start<float>(p.dbeta, c)[factors(p).offset(p.dbeta, row)] = sum;
      }
    }
  }

  if (!p.first && (!p.d_state || walk.begin > 0)) return;
  float* const start = p.first ? p.d_ends + end_at : p.d_state + static_cast<size_t>(walk.pair) * p.K * p.V;
  each_of_state<KeyTile / 8>(column, [&](int i, int e, int key, int value) {
    if (value < p.V && key < p.K) start[static_cast<size_t>(key) * p.V + value] = d_state[i][e];
  });
}

struct Launch {
  const Problem& p;
  Target to;
  template <class E, int KeyTile, int Tokens>
  cudaError_t operator()() const {
    const size_t bytes = sizeof(float) * p.warps * kRows + p.stages * Stage<E, KeyTile, Tokens>::bytes(p.warps);
    return launch(backward<E, KeyTile, Tokens>, dim3(p.pairs * p.segments.walked, p.slices), 32 * p.warps, bytes, to,
                  p);
  }
};

}  // namespace

cudaError_t launch_backward(const Problem& p, bool bf16_operands, Target to) {
  return dispatch(p, bf16_operands, Launch{p, to});
}

}  // namespace sb::cuda
