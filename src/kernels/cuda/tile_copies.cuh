// Copies between device memory and tiles in shared memory.
#pragma once
#include "kernels/cuda/row_strides.h"
#include "kernels/cuda/tiles.cuh"

namespace sb::cuda {

// Distributes the copy of a tile, in pieces of 16 bytes: each thread of the block keeps its columns and loops over
// rows.
template <class E>
struct TileWalk {
  int row, column, step;
  __device__ explicit TileWalk(int cols) {
    constexpr int width = 16 / sizeof(E);
    const int vectors = cols / width;
    step = blockDim.x / vectors;
    row = threadIdx.x / vectors;
    column = (threadIdx.x - row * vectors) * width;
    if (row >= step) row = 1 << 20;  // surplus threads have no rows
  }
};

// Starts copying contiguous rows to a tile, only the first `present` columns; called by all threads
template <class E>
__device__ __forceinline__ void load_tile(E* tile, int ld, const E* from, int from_ld, int rows, TileWalk<E> w,
                                          int present = 1 << 20) {
  if (w.column >= present) return;
  from += w.column, tile += w.column;
  for (; w.row < rows; w.row += w.step) copy_async(tile + w.row * ld, from + w.row * from_ld, 16);
}

// Copies 16 columns of a tile to memory; called by one warp
template <class E>
__device__ __forceinline__ void store_columns(const E* tile, int ld, E* to, int to_ld, int rows) {
  constexpr int vector = 16 / sizeof(E), vectors = 16 / vector;
  const int col = lane_id() % vectors * vector;
  for (int row = lane_id() / vectors; row < rows; row += 32 / vectors) {
    *reinterpret_cast<uint4*>(to + row * to_ld + col) = *reinterpret_cast<const uint4*>(tile + row * ld + col);
  }
}

inline constexpr int kBlock = 256;  // threads that copy a tile, unless a kernel has others

// Rows of one head in device memory. `wide`: every row is aligned to 16 bytes and a multiple of 16 bytes long.
template <class E>
struct HeadRows {
  E* data;
  int64_t stride;
  bool wide;
  template <class Void>
  __device__ HeadRows(const RowsOf<Void>& rows, int64_t batch, int64_t time, int64_t head, int width)
      : data(static_cast<E*>(rows.data) + batch * rows.batch + time * rows.time + head * rows.head), stride(rows.time) {
    constexpr int part = 16 / sizeof(E);
    wide = width % part == 0 && stride % part == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
  }
  __device__ HeadRows(E* p, int64_t s) : data(p), stride(s), wide(true) {}
};

// Reads a tile of Rows x Columns and calls put_wide(row, column, 16 bytes) or, if rows are not wide, put(row, column,
// element) for it. Elements outside rows x width are zero.
template <int Rows, int Columns, int Threads, class E, class PutWide, class Put>
__device__ inline void read_tile(const HeadRows<const E>& from, int rows, int width, const Place& at,
                                 const PutWide& put_wide, const Put& put) {
  if (from.wide) {
    constexpr int part = 16 / sizeof(E), parts = Columns / part, each = (Rows * parts + Threads - 1) / Threads;
    uint4 x[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int index = i * Threads + at.thread, r = index / parts, c = index % parts * part;
      x[i] = r < rows && c < width ? __ldg(reinterpret_cast<const uint4*>(from.data + r * from.stride + c)) : uint4{};
    }
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int index = i * Threads + at.thread, r = index / parts, c = index % parts * part;
      if (Rows * parts % Threads == 0 || r < Rows) put_wide(r, c, x[i]);
    }
  } else {
    constexpr int warps = Threads / 32, each = (Columns + 31) / 32;
#pragma unroll 4
    for (int r = at.warp; r < Rows; r += warps) {
      E x[each];
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const int c = i * 32 + at.lane;
        x[i] = r < rows && c < width ? from.data[r * from.stride + c] : from_float<E>(0);
      }
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const int c = i * 32 + at.lane;
        if (Columns % 32 == 0 || c < Columns) put(r, c, x[i]);
      }
    }
  }
}

template <int Rows, int Columns, int Threads = kBlock, class E>
__device__ inline void load_tile(E* tile, int ld, const HeadRows<const E>& from, int rows, int width, const Place& at) {
  read_tile<Rows, Columns, Threads>(
      from, rows, width, at, [&](int r, int c, uint4 x) { *reinterpret_cast<uint4*>(tile + r * ld + c) = x; },
      [&](int r, int c, E x) { tile[r * ld + c] = x; });
}

// Like load_tile, but asynchronous if rows are wide: the tile is complete after finish_copies() and a barrier.
template <int Rows, int Columns, int Threads = kBlock, class E>
__device__ inline void copy_tile(E* tile, int ld, const HeadRows<const E>& from, int rows, int width, const Place& at) {
  if (!from.wide) {
    load_tile<Rows, Columns, Threads>(tile, ld, from, rows, width, at);
    return;
  }
  constexpr int part = 16 / sizeof(E), parts = Columns / part;
#pragma unroll
  for (int i = at.thread; i < Rows * parts; i += Threads) {
    const int r = i / parts, c = i % parts * part;
    const bool inside = r < rows && c < width;
    copy_async(tile + r * ld + c, inside ? from.data + r * from.stride + c : from.data, inside ? 16 : 0);
  }
}

template <class E>
__device__ inline uint4 times(uint4 x, float factor) {
  E* e = reinterpret_cast<E*>(&x);
#pragma unroll
  for (int i = 0; i < static_cast<int>(16 / sizeof(E)); ++i) e[i] = from_float<E>(to_float(e[i]) * factor);
  return x;
}

// scaled[r, c] = scale factor[r] x[r, c]. If `tile` is not null, it gets the unscaled rows.
template <int Rows, int Columns, class E>
__device__ inline void load_scaled_tile(E* tile, E* scaled, int ld, const HeadRows<const E>& from, int rows, int width,
                                        const float* factor, float scale, const Place& at) {
  read_tile<Rows, Columns, kBlock>(
      from, rows, width, at,
      [&](int r, int c, uint4 x) {
        if (tile) *reinterpret_cast<uint4*>(tile + r * ld + c) = x;
        *reinterpret_cast<uint4*>(scaled + r * ld + c) = times<E>(x, scale * factor[r]);
      },
      [&](int r, int c, E x) {
        if (tile) tile[r * ld + c] = x;
        scaled[r * ld + c] = from_float<E>(to_float(x) * (scale * factor[r]));
      });
}

// Writes two adjacent elements of a row of `width` columns.
template <class E>
__device__ inline void write_pair(const HeadRows<E>& to, int row, int column, int width, float x, float y) {
  E* p = to.data + row * to.stride + column;
  if (to.wide) {
    if (column < width) store_pair(p, x, y);
  } else {
    if (column < width) p[0] = from_float<E>(x);
    if (column + 1 < width) p[1] = from_float<E>(y);
  }
}

}  // namespace sb::cuda
