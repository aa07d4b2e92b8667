// Tiles of the generalised delta rule's loops over chunks. A chunk is processed in three phases, each with its own
// decayed rows and matrices of pairs. If shared memory has room for two chunks, the next one is loaded meanwhile. With
// room for one, the tiles of a phase are replaced by the next chunk's as soon as the phase has ended. Otherwise each
// phase loads its own tiles and overwrites those of the phase before. The first pass over the segments has no phase 1.
// Nor has backward if keys are written.
#pragma once
#include "kernels/cuda/general_delta_problem.cuh"

namespace sb::cuda {

// Decayed rows (DecayedRows) and indices of matrices in the order of their use: phase 0 uses keys[0] and matrices[0]
// and [1], phase 1 uses keys[1] and matrices[2] and [3], phase 2 uses keys[2] and [3].
// Forward uses half of them if keys are written: keys[0] and matrices[0], keys[1] and matrices[1], then keys[2].
struct WalkOrder {
  int keys[4], matrices[4];
};

// Phases: 3, or 2 if there is no phase 1. Each: number of matrices in phases 0 and 1, and of decayed rows in phase 2
template <class E, int KeyTile, int Sides, int Phases, int Each>
struct WalkTiles {
  static constexpr bool at_once = sizeof(E) == 2 && KeyTile <= 128;
  static constexpr int key_ld = KeyTile + kPad, key_slots = at_once ? Phases + Each - 1 : Each,
                       matrix_slots = at_once     ? (Phases - 1) * Each
                                      : Each == 2 ? Phases
                                                  : 1;
  float* factors;
  E *keys, *matrices, *values;
  int value_ld;

  __host__ __device__ static constexpr size_t bytes(int warps) {
    return sizeof(float) * KeyTile +
           sizeof(E) * kRows * (key_slots * key_ld + matrix_slots * kPairLd + 16 * warps + kPad);
  }
  // Up to six warps leave room for a second block, which works while this one loads.
  static int stages(const void* kernel, int warps) {
    return at_once && warps > 6 && fits(kernel, 32 * warps, 2 * bytes(warps)) ? 2 : 1;
  }
  __device__ WalkTiles(char* memory, int warps) {
    factors = reinterpret_cast<float*>(memory);
    keys = reinterpret_cast<E*>(factors + KeyTile);
    matrices = keys + key_slots * kRows * key_ld;
    values = matrices + matrix_slots * kRows * kPairLd;
    value_ld = 16 * warps + kPad;
  }
  // Without phase 1, the last of the keys has the slot of keys[1], which is not loaded.
  __device__ E* key(int i) const {
    return keys + (at_once && Phases == 2 && i == key_slots ? 1 : i % key_slots) * kRows * key_ld;
  }
  __device__ E* matrix(int i) const { return matrices + i % matrix_slots * kRows * kPairLd; }

  // Starts loading the tiles of a phase
  __device__ void load(const GeneralProblem& p, const Chunk& c, const WalkOrder& order, int phase) const {
    const TileWalk<E> by_key(KeyTile), by_step(kRows);
    const auto load_key = [&](int i) {
      load_tile(key(i), key_ld, p.rows_of<E, Sides>(p.rows, c.index, order.keys[i]), KeyTile, kRows, by_key);
    };
    const auto load_matrix = [&](int i) {
      load_tile(matrix(i), kPairLd, p.matrix_of<E, Sides>(p.matrices, c.index, order.matrices[i]), kRows, kRows,
                by_step);
    };
    if (phase == 0) {
      load_key(0), load_matrix(0);
      if constexpr (Each == 2) load_matrix(1);
    } else if (phase == 1) {
      load_key(1), load_matrix(Each);
      if constexpr (Each == 2) load_matrix(3);
    } else {
      load_key(2);
      if constexpr (Each == 2) load_key(3);
    }
  }
  // Starts loading the columns of `rows` from `column` on, and the factors
  __device__ void load_values(const GeneralProblem& p, const Chunk& c, const View& rows, int column) const {
    load_rows(values, value_ld, rows, c, tokens_only(), kRows, column, TileWalk<E>(16 * p.warps), p.V);
    load_tile(factors, KeyTile, p.factors + c.index * KeyTile, KeyTile, 1, TileWalk<float>(KeyTile));
  }
};

// Loads of a loop over chunks. Called by all threads: begin() before the loop; start() and finish() around each chunk;
// phase() before the phases 1 and 2.
template <class E, int KeyTile, int Sides, int Phases, int Each>
struct WalkLoads {
  using Tiles = WalkTiles<E, KeyTile, Sides, Phases, Each>;
  const GeneralProblem& p;
  WalkOrder order;
  View rows;
  Walk walk;
  int column, stages;
  __device__ Tiles tiles(int chunk) const {
    return Tiles(shared_memory() + (stages == 2 ? chunk & 1 : 0) * Tiles::bytes(p.warps), p.warps);
  }
  __device__ void load(int chunk, int phase) const { tiles(chunk).load(p, Chunk(p, walk.pair, chunk), order, phase); }
  __device__ void load_values(int chunk) const {
    tiles(chunk).load_values(p, Chunk(p, walk.pair, chunk), rows, column);
  }
  __device__ void load_chunk(int chunk) const {
    for (int phase = 0; phase < (Tiles::at_once ? 3 : 1); phase += Phases == 2 ? 2 : 1) load(chunk, phase);
    load_values(chunk);
    copy_commit();
  }
  __device__ bool exists(int chunk) const { return chunk >= walk.begin && chunk < walk.end; }
  __device__ void begin(int chunk) const { load_chunk(chunk); }
  __device__ Tiles start(int chunk, int next) const {
    if (stages == 2 && exists(next)) {
      load_chunk(next);
      copy_wait<1>();
    } else {
      copy_wait<0>();
    }
    __syncthreads();
    return tiles(chunk);
  }
  __device__ void phase(int chunk, int next, int phase) const {
    if (stages == 2) return;
    __syncthreads();
    if (Tiles::at_once) {
      if (exists(next)) load(next, Phases == 2 ? 0 : phase - 1);
      return;
    }
    load(chunk, phase);
    copy_commit();
    copy_wait<0>();
    __syncthreads();
  }
  __device__ void finish(int next) const {
    __syncthreads();
    if (stages == 2 || !exists(next)) return;
    load(next, Tiles::at_once ? 2 : 0);
    load_values(next);
    copy_commit();
  }
};

// `rows` of the caller's tensor, with elements of type E
template <class E, class Void>
View view_of(const RowsOf<Void>& rows) {
  const auto whole = [](int64_t stride) { return stride * static_cast<int64_t>(sizeof(E)) % 16 == 0; };
  const bool aligned =
      reinterpret_cast<uintptr_t>(rows.data) % 16 == 0 && whole(rows.batch) && whole(rows.time) && whole(rows.head);
  return {static_cast<char*>(const_cast<void*>(static_cast<const void*>(rows.data))),
          rows.batch,
          rows.head,
          static_cast<int>(rows.time),
          0,
          aligned};
}

// The chunk's rows of the warp's 16 columns, transposed
template <class E, int Steps>
__device__ __forceinline__ void load_columns(Left<E> (&x)[Steps], const E* tile, int ld) {
#pragma unroll
  for (int i = 0; i < Steps; ++i) load_transposed(x[i], tile + i * Left<E>::depth * ld, ld);
}
template <class E, int Steps>
__device__ __forceinline__ void store_columns_of(const Left<E> (&x)[Steps], E* tile, int ld) {
#pragma unroll
  for (int i = 0; i < Steps; ++i) store_transposed(x[i], tile + i * Left<E>::depth * ld, ld);
}
template <class E, int Steps, int Tiles>
__device__ __forceinline__ void from_all_sums(Left<E> (&x)[Steps], const Sum (&sums)[Tiles]) {
#pragma unroll
  for (int i = 0; i < Steps; ++i) from_sums(x[i], sums + i * (Left<E>::depth / 8));
}
template <int Tiles>
__device__ __forceinline__ void negate(Sum (&sums)[Tiles]) {
#pragma unroll
  for (int i = 0; i < Tiles; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[i][j] = -sums[i][j];
}
template <class E>
__device__ __forceinline__ Left<E> negated(Left<E> x) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(E) == 2)
      x.r[i] ^= 0x80008000u;
    else
      x.r[i] = -x.r[i];
  }
  return x;
}
// sums <- x - sums
template <class E, int Steps, int Tiles>
__device__ __forceinline__ void subtract_from(Sum (&sums)[Tiles], const Left<E> (&x)[Steps]) {
  constexpr int each = Left<E>::depth / 8;
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
    Sum part[each];
    to_sums(part, x[i]);
#pragma unroll
    for (int j = 0; j < 4 * each; ++j)
      sums[i * each + j / 4][j % 4] = part[j / 4][j % 4] - sums[i * each + j / 4][j % 4];
  }
}

// Calls f<E, key tile, sides>.
template <class F>
cudaError_t dispatch_walk(const GeneralProblem& p, F f) {
#define SB_TILE(E, width)  \
  if (p.key_tile == width) \
  return p.in.writes_keys ? f.template operator()<E, width, 1>() : f.template operator()<E, width, 2>()
  if (p.in.precision == Precision::bf16) {
    SB_TILE(bf16, 64);
    SB_TILE(bf16, 80);
    SB_TILE(bf16, 96);
    SB_TILE(bf16, 128);
    SB_TILE(bf16, 256);
  } else {
    SB_TILE(float, 64);
    SB_TILE(float, 96);
    SB_TILE(float, 128);
    SB_TILE(float, 256);
  }
#undef SB_TILE
  return cudaErrorInvalidValue;
}

}  // namespace sb::cuda
