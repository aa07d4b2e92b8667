// Shared parts of the delta rules' loops over chunks: copies between rows of the caller's tensors and tiles, and the
// state of 16 columns of V that a warp holds in registers as S^T.
#pragma once
#include "kernels/cuda/tile_copies.cuh"

namespace sb::cuda {

constexpr int kRows = 64;  // per chunk
constexpr int kPad = 8;    // padding elements after each row of a tile
constexpr int kPairLd = kRows + kPad;

struct View {
  char* data;
  int64_t batch, head;
  int time, factor;
  bool aligned;  // every row is aligned to 16 bytes
};

__device__ inline char* shared_memory() {
  extern __shared__ __align__(128) char delta_shared[];
  return delta_shared;
}

struct Chunk {
  int64_t index;  // of (pair, chunk)
  int batch, head;
  int first;   // first token
  int tokens;  // tokens in this chunk, <= p.tokens
  template <class Problem>
  __device__ Chunk(const Problem& p, int pair, int chunk)
      : index(static_cast<int64_t>(pair) * p.chunks + chunk),
        batch(pair / p.heads),
        head(pair % p.heads),
        first(chunk * p.tokens),
        tokens(min(p.tokens, p.time - first)) {}
};

template <class E>
__device__ inline E* row_start(const View& view, const Chunk& c) {
  return reinterpret_cast<E*>(view.data) + c.batch * view.batch + c.head * view.head +
         static_cast<int64_t>(c.first) * view.time;
}

// Mapping of a chunk's rows to tokens and factors. For q and out, rows are tokens.
struct Factors {
  int n, token_factor;
  __device__ int token(int row) const { return row * token_factor >> 8; }
  __device__ int offset(const View& view, int row) const {
    const int t = token(row);
    return t * view.time + (row - t * n) * view.factor;
  }
};
__device__ inline Factors tokens_only() {
  return {1, 257};
}

// Loads `rows` rows of a tile from the tensor, from column `column` on. Elements outside the tensor become zero.
template <class E>
__device__ __forceinline__ void load_rows(E* tile, int ld, const View& view, const Chunk& c, Factors f, int rows,
                                          int column, TileWalk<E> w, int width) {
  constexpr int vector = 16 / sizeof(E);
  const E* from = row_start<E>(view, c) + column + w.column;
  const int present = c.tokens * f.n, count = max(0, min(vector, width - column - w.column));
  E* to = tile + w.column;
  if (view.aligned) {
    const E* nothing = reinterpret_cast<const E*>(view.data);
    for (; w.row < rows; w.row += w.step) {
      const bool here = w.row < present && count > 0;
      copy_async(to + w.row * ld, here ? from + f.offset(view, w.row) : nothing,
                 here ? count * static_cast<int>(sizeof(E)) : 0);
    }
  } else {
    for (; w.row < rows; w.row += w.step) {
      const E* x = from + (w.row < present ? f.offset(view, w.row) : 0);
      const int have = w.row < present ? count : 0;
      E line[vector];
#pragma unroll
      for (int j = 0; j < vector; ++j) line[j] = j < have ? x[j] : E(0.f);
      uint4 bits;
      memcpy(&bits, line, 16);
      *reinterpret_cast<uint4*>(to + w.row * ld) = bits;
    }
  }
}

// Stores the warp's 16 columns, held as tile[row][16], to the tensor from column `column` on
template <class E>
__device__ __forceinline__ void store_rows(const E* tile, int ld, const View& view, const Chunk& c, Factors f,
                                           int column, int width) {
  constexpr int vector = 16 / sizeof(E), vectors = 16 / vector;
  const int col = lane_id() % vectors * vector, left = width - column - col;
  E* to = row_start<E>(view, c) + column + col;
  const bool whole = view.aligned && vector <= left;
  for (int row = lane_id() / vectors; row < c.tokens * f.n; row += 32 / vectors) {
    const E* from = tile + row * ld + col;
    E* x = to + f.offset(view, row);
    if (whole) {
      *reinterpret_cast<uint4*>(x) = *reinterpret_cast<const uint4*>(from);
    } else {
      for (int j = 0; j < vector && j < left; ++j) x[j] = from[j];
    }
  }
}

template <class E>
__device__ inline E* pairs_of(void* matrices, const Chunk& c) {
  return static_cast<E*>(matrices) + c.index * (kRows * kRows);
}

// Stores the warp's 16 columns of a state, whose transpose is in registers, to memory, via 64 rows of a tile
template <int Tiles, class E>
__device__ __forceinline__ void store_state(const Sum (&state)[Tiles], E* tile, int ld, E* to, int to_ld) {
  constexpr int depth = Left<E>::depth;
#pragma unroll
  for (int begin = 0; begin < 8 * Tiles; begin += kRows) {
    const int rows = 8 * Tiles - begin < kRows ? 8 * Tiles - begin : kRows;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < rows; k += depth) {
      Left<E> a;
      from_sums(a, state + (begin + k) / 8);
      store_transposed(a, tile + k * ld, ld);
    }
    __syncwarp();
    store_columns(tile, ld, to + begin * to_ld, to_ld, rows);
  }
}

// Calls f(tile, element, key, value) for the lane's elements of the state
template <int Tiles, class F>
__device__ __forceinline__ void each_of_state(int column, F f) {
#pragma unroll
  for (int i = 0; i < Tiles; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int value = column + (lane_id() >> 2) + (e >> 1) * 8, key = 8 * i + 2 * (lane_id() & 3) + (e & 1);
      f(i, e, key, value);
    }
  }
}

}  // namespace sb::cuda
