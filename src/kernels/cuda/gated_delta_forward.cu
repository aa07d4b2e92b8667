// Forward loop over the chunks (formulas: gated_delta_problem.cuh). One block per (sequence, head) pair, segment and
// slice of V. Each warp keeps S^T of its 16 columns in registers and does not wait for other warps within a chunk.
// First: the first pass over the segments, which needs neither q nor P and so runs with more warps.
#include "kernels/cuda/gated_delta_problem.cuh"

namespace sb::cuda {
namespace {

// Rows: those of q and P
template <class E, int KeyTile, int Rows>
struct Stage {
  static constexpr int key_ld = KeyTile + kPad;
  E *k, *q, *inverse, *P, *v;
  float* gates;

  __host__ __device__ static constexpr int value_ld(int warps) { return 16 * warps + kPad; }
  __host__ __device__ static constexpr size_t bytes(int warps) {
    return sizeof(float) * kGates + sizeof(E) * ((kRows + Rows) * (key_ld + kPairLd) + kRows * value_ld(warps));
  }
  __device__ Stage(char* memory, int warps) {
    gates = reinterpret_cast<float*>(memory);
    k = reinterpret_cast<E*>(gates + kGates);
    q = k + kRows * key_ld;
    inverse = q + Rows * key_ld;
    P = inverse + kRows * kPairLd;
    v = P + Rows * kPairLd;
  }
  __device__ void load(const Problem& p, const Chunk& c, int column, int warps) const {
    const TileWalk<E> keys(KeyTile), pairs(kRows), values(16 * warps);
    load_rows(k, key_ld, p.k, c, factors(p), kRows, 0, keys, p.K);
    load_tile(inverse, kPairLd, pairs_of<E>(p.inverse, c), kRows, kRows, pairs);
    load_tile(gates, kRows, gates_of(p, c), kRows, gate_count, TileWalk<float>(kRows));
    load_rows(v, value_ld(warps), p.v, c, factors(p), kRows, column, values, p.V);
    if constexpr (Rows > 0) {
      load_rows(q, key_ld, p.q, c, tokens_only(), Rows, 0, keys, p.K);
      load_tile(P, kPairLd, pairs_of<E>(p.P, c), kRows, Rows, pairs);
    }
    copy_commit();
  }
};

template <class E, int KeyTile, int Tokens, bool First>
__global__ void __launch_bounds__(32 * most_warps(sizeof(E) == 2, KeyTile, First)) forward(const Problem p) {
  using Tiles = Stage<E, KeyTile, First ? 0 : Tokens>;
  constexpr int depth = Left<E>::depth, ld = Tiles::key_ld, steps = kRows / depth;
  const int warps = p.warps, warp = threadIdx.x / 32, t = lane_id() & 3;
  const int slice = 16 * warps * blockIdx.y, column = slice + 16 * warp, value_ld = Tiles::value_ld(warps);
  const bool outputs = !First && p.out.data, exact = p.exact;
  const Walk walk(p.segments, p.chunks);
  const size_t start_at = static_cast<size_t>(walk.index) * p.K * p.V;

  Sum state[KeyTile / 8];  // S^T: row a column of V
  E* const states = static_cast<E*>(p.states) + column;
  each_of_state<KeyTile / 8>(column, [&](int i, int e, int key, int value) {
    const bool given = p.state && value < p.V && key < p.K;
    const float identity = First && key < p.K && value - p.transition == key ? 1.f : 0.f;
    state[i][e] = given ? p.state[start_at + static_cast<size_t>(key) * p.V + value] : identity;
    if (!First && p.states) {
      states[(Chunk(p, walk.pair, walk.begin).index * KeyTile + key) * p.values + value - column] = E(state[i][e]);
    }
  });
  const auto stage = [&](int chunk) {
    return Tiles(shared_memory() + (p.stages == 2 ? chunk & 1 : 0) * Tiles::bytes(warps), warps);
  };

  stage(walk.begin).load(p, Chunk(p, walk.pair, walk.begin), slice, warps);
  for (int chunk = walk.begin; chunk < walk.end; ++chunk) {
    const Chunk c(p, walk.pair, chunk);
    const Tiles s = stage(chunk);
    if (p.stages == 2 && chunk + 1 < walk.end) {
      stage(chunk + 1).load(p, Chunk(p, walk.pair, chunk + 1), slice, warps);
      copy_wait<1>();
    } else {
      copy_wait<0>();
    }
    __syncthreads();
    E* const staged = s.v + 16 * warp;  // once the warp's columns of v are read, they carry its results to memory

    // E^T = V^T - c (S^T K^T), then V'^T = E^T N^T
    Left<E> a[steps], a_until_end[steps];
    {
      Sum sums[kRows / 8];
      clear(sums);
      multiply_sums<false>(sums, state, s.k, ld, exact);
#pragma unroll
      for (int i = 0; i < steps; ++i) {
        Sum v[depth / 8];
        load_transposed(a[i], staged + i * depth * value_ld, value_ld);
        to_sums(v, a[i]);
#pragma unroll
        for (int j = 0; j < depth / 8; ++j) {
          const Sum& x = sums[i * (depth / 8) + j];
          const float2 since =
              *reinterpret_cast<const float2*>(s.gates + since_start * kRows + i * depth + 8 * j + 2 * t);
          v[j][0] -= since.x * x[0], v[j][1] -= since.y * x[1];
          v[j][2] -= since.x * x[2], v[j][3] -= since.y * x[3];
        }
        from_sums(a[i], v);
      }
      clear(sums);
      multiply_all<false, Blocks::k_up_to_n>(sums, a, s.inverse, kPairLd, exact);
#pragma unroll
      for (int i = 0; i < steps; ++i) {
        from_sums(a[i], sums + i * (depth / 8));
        from_sums(a_until_end[i], sums + i * (depth / 8), s.gates + until_end * kRows + i * depth);
      }
    }
    if (!First && p.corrected) {
      __syncwarp();
#pragma unroll
      for (int i = 0; i < steps; ++i) store_transposed(a[i], staged + i * depth * value_ld, value_ld);
      __syncwarp();
      store_columns(staged, value_ld, static_cast<E*>(p.corrected) + c.index * kRows * p.values + column, p.values,
                    kRows);
    }

    // O^T = scale c (S^T Q^T) + V'^T P^T, in two halves to spare registers
    if (outputs) {
      constexpr int part = Tokens > 32 ? 32 : Tokens;
      __syncwarp();
#pragma unroll
      for (int begin = 0; begin < Tokens; begin += part) {
        Sum sums[part / 8];
        clear(sums);
        multiply_sums<false>(sums, state, s.q + begin * ld, ld, exact);
#pragma unroll
        for (int i = 0; i < part / 8; ++i) {
          const float* since = s.gates + since_start * kRows;
          const int row = min((begin + 8 * i + 2 * t) * p.n, kRows - 1), next = min(row + p.n, kRows - 1);
          sums[i][0] *= p.scale * since[row], sums[i][2] *= p.scale * since[row];
          sums[i][1] *= p.scale * since[next], sums[i][3] *= p.scale * since[next];
        }
#pragma unroll
        for (int i = 0; i < steps; ++i) {
          if (i * depth >= begin + part && p.n == 1) continue;  // P is lower triangular
          multiply_step<false>(sums, a[i], i * depth, s.P + begin * kPairLd, kPairLd, exact);
        }
#pragma unroll
        for (int i = 0; i < part / depth; ++i) {
          Left<E> o;
          from_sums(o, sums + i * (depth / 8));
          store_transposed(o, staged + (begin + i * depth) * value_ld, value_ld);
        }
      }
      __syncwarp();
      store_rows(staged, value_ld, p.out, c, tokens_only(), column, p.V);
    }

    // S^T <- c_last S^T + (u V')^T K
    const float decay = s.gates[since_start * kRows + kRows - 1];
#pragma unroll
    for (int i = 0; i < KeyTile / 8; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) state[i][e] *= decay;
    }
    multiply_all<true>(state, a_until_end, s.k, ld, exact);
    if (!First && p.states && chunk + 1 < walk.end) {
      store_state(state, staged, value_ld, states + (c.index + 1) * KeyTile * p.values, p.values);
    }
    __syncthreads();
    if (p.stages == 1 && chunk + 1 < walk.end) {
      stage(0).load(p, Chunk(p, walk.pair, chunk + 1), slice, warps);
    }
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
  const Problem& p;
  Target to;
  template <class E, int KeyTile, int Tokens>
  cudaError_t operator()() const {
    return p.first ? run(forward<E, KeyTile, kRows, true>, Stage<E, KeyTile, 0>::bytes(p.warps))
                   : run(forward<E, KeyTile, Tokens, false>, Stage<E, KeyTile, Tokens>::bytes(p.warps));
  }
  cudaError_t run(void (*kernel)(Problem), size_t stage) const {
    return launch(kernel, dim3(p.pairs * p.segments.walked, p.slices), 32 * p.warps, p.stages * stage, to, p);
  }
};

}  // namespace

cudaError_t launch_forward(const Problem& p, bool bf16_operands, Target to) {
  return dispatch(p, bf16_operands, Launch{p, to});
}

}  // namespace sb::cuda
