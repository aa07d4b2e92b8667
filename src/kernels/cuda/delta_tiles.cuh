// Tiles in shared memory (row-major, rows padded by 8 elements) and fragments in registers for the 16 x 8 products of
// one warp. Throughout, lane l is (g, t) = (l / 4, l % 4).
//   Sum      16 x 8 floats; a lane holds (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)
//   Left<E>  16 x depth operand, depth = 16 for bf16, 8 for float; the columns of a Sum can become columns of a Left
//   Right<E> depth x 8 operand
// For float, the hardware's k index t stands for column 2t, and t + 4 for column 2t + 1, in both operands. With this
// order a Sum becomes a Left without exchange between lanes, as for bf16.
#pragma once
#include "kernels/cuda/ptx.cuh"

namespace sb::cuda {

using Sum = float[4];

template <class E>
struct Left;
template <>
struct Left<bf16> {
  static constexpr int depth = 16;
  uint32_t r[4];
};
template <>
struct Left<float> {
  static constexpr int depth = 8;
  float r[4];
};
template <class E>
struct Right;
template <>
struct Right<bf16> {
  uint32_t r[2];
};
template <>
struct Right<float> {
  float r[2];
};

__device__ inline int lane_id() {
  return threadIdx.x & 31;
}

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, 4);
  return bits;
}
__device__ inline float2 unpack(uint32_t bits) {
  return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
}

// Loads a Left from tile[m][k]; p points to element (0, 0) of the operand
__device__ inline void load(Left<bf16>& a, const bf16* p, int ld) {
  const int l = lane_id();
  load_matrices(a.r, p + (l & 15) * ld + (l >> 4) * 8);
}
__device__ inline void load(Left<float>& a, const float* p, int ld) {
  const float* x = p + (lane_id() >> 2) * ld + 2 * (lane_id() & 3);
  a.r[0] = x[0], a.r[2] = x[1];
  a.r[1] = x[8 * ld], a.r[3] = x[8 * ld + 1];
}
// Loads a Left from tile[k][m]
__device__ inline void load_transposed(Left<bf16>& a, const bf16* p, int ld) {
  const int l = lane_id();
  load_matrices_transposed(a.r, p + ((l & 7) + (l >> 4) * 8) * ld + (l & 8));
}
__device__ inline void load_transposed(Left<float>& a, const float* p, int ld) {
  const float* x = p + 2 * (lane_id() & 3) * ld + (lane_id() >> 2);
  a.r[0] = x[0], a.r[1] = x[8];
  a.r[2] = x[ld], a.r[3] = x[ld + 8];
}
// Inverse: stores a Left to tile[k][m]
__device__ inline void store_transposed(const Left<bf16>& a, bf16* p, int ld) {
  const int l = lane_id();
  store_matrices_transposed(a.r, p + ((l & 7) + (l >> 4) * 8) * ld + (l & 8));
}
__device__ inline void store_transposed(const Left<float>& a, float* p, int ld) {
  float* x = p + 2 * (lane_id() & 3) * ld + (lane_id() >> 2);
  x[0] = a.r[0], x[8] = a.r[1];
  x[ld] = a.r[2], x[ld + 8] = a.r[3];
}

// Loads two Rights (16 columns), or one, from tile[n][k]
__device__ inline void load(Right<bf16> (&b)[2], const bf16* p, int ld) {
  const int l = lane_id();
  uint32_t r[4];
  load_matrices(r, p + ((l & 7) + (l >> 4) * 8) * ld + (l & 8));
  b[0] = {{r[0], r[1]}}, b[1] = {{r[2], r[3]}};
}
__device__ inline void load(Right<float> (&b)[2], const float* p, int ld) {
  const float* x = p + (lane_id() >> 2) * ld + 2 * (lane_id() & 3);
  b[0] = {{x[0], x[1]}}, b[1] = {{x[8 * ld], x[8 * ld + 1]}};
}
__device__ inline void load(Right<bf16>& b, const bf16* p, int ld) {
  load_matrices(b.r, p + (lane_id() & 7) * ld + (lane_id() & 8));
}
__device__ inline void load(Right<float>& b, const float* p, int ld) {
  const float* x = p + (lane_id() >> 2) * ld + 2 * (lane_id() & 3);
  b = {{x[0], x[1]}};
}
// The same from tile[k][n]
__device__ inline void load_transposed(Right<bf16> (&b)[2], const bf16* p, int ld) {
  const int l = lane_id();
  uint32_t r[4];
  load_matrices_transposed(r, p + (l & 15) * ld + (l >> 4) * 8);
  b[0] = {{r[0], r[1]}}, b[1] = {{r[2], r[3]}};
}
__device__ inline void load_transposed(Right<bf16>& b, const bf16* p, int ld) {
  load_matrices_transposed(b.r, p + (lane_id() & 15) * ld);
}
__device__ inline void load_transposed(Right<float>& b, const float* p, int ld) {
  const float* x = p + 2 * (lane_id() & 3) * ld + (lane_id() >> 2);
  b = {{x[0], x[ld]}};
}
__device__ inline void load_transposed(Right<float> (&b)[2], const float* p, int ld) {
  load_transposed(b[0], p, ld);
  load_transposed(b[1], p + 8, ld);
}

// c += a b. `exact`: uses three TF32 products instead of one. These are summed separately and then added to c, because
// tensor cores truncate sums, while this addition rounds.
__device__ inline void multiply(Sum& c, const Left<bf16>& a, const Right<bf16>& b, bool) {
  mma_bf16(c, a.r, b.r);
}
__device__ inline void multiply(Sum& c, const Left<float>& a, const Right<float>& b, bool exact) {
  uint32_t high_a[4], high_b[2];
  for (int i = 0; i < 4; ++i) high_a[i] = to_tf32(a.r[i]);
  for (int i = 0; i < 2; ++i) high_b[i] = to_tf32(b.r[i]);
  if (!exact) return mma_tf32(c, high_a, high_b);
  uint32_t low_a[4], low_b[2];
  for (int i = 0; i < 4; ++i) low_a[i] = to_tf32(a.r[i] - __uint_as_float(high_a[i]));
  for (int i = 0; i < 2; ++i) low_b[i] = to_tf32(b.r[i] - __uint_as_float(high_b[i]));
  Sum product = {0, 0, 0, 0};
  mma_tf32(product, low_a, high_b);
  mma_tf32(product, high_a, low_b);
  mma_tf32(product, high_a, high_b);
  for (int i = 0; i < 4; ++i) c[i] += product[i];
}

// Converts depth / 8 Sums to a Left, and back
__device__ inline void from_sums(Left<bf16>& a, const Sum* c) {
  a.r[0] = pack(c[0][0], c[0][1]), a.r[1] = pack(c[0][2], c[0][3]);
  a.r[2] = pack(c[1][0], c[1][1]), a.r[3] = pack(c[1][2], c[1][3]);
}
__device__ inline void from_sums(Left<float>& a, const Sum* c) {
  a.r[0] = c[0][0], a.r[1] = c[0][2], a.r[2] = c[0][1], a.r[3] = c[0][3];
}
__device__ inline void to_sums(Sum* c, const Left<bf16>& a) {
  for (int i = 0; i < 4; ++i) {
    const float2 x = unpack(a.r[i]);
    c[i >> 1][2 * (i & 1)] = x.x, c[i >> 1][2 * (i & 1) + 1] = x.y;
  }
}
__device__ inline void to_sums(Sum* c, const Left<float>& a) {
  c[0][0] = a.r[0], c[0][2] = a.r[1], c[0][1] = a.r[2], c[0][3] = a.r[3];
}
// The same, with column n of the operand multiplied by scale[n]; scale points to the value for the first column
template <class E>
__device__ inline void from_sums(Left<E>& a, const Sum* c, const float* scale) {
  constexpr int tiles = Left<E>::depth / 8;
  Sum x[tiles];
#pragma unroll
  for (int i = 0; i < tiles; ++i) {
    const float2 s = *reinterpret_cast<const float2*>(scale + 8 * i + 2 * (lane_id() & 3));
    x[i][0] = c[i][0] * s.x, x[i][1] = c[i][1] * s.y;
    x[i][2] = c[i][2] * s.x, x[i][3] = c[i][3] * s.y;
  }
  from_sums(a, x);
}

// Which 16 x 16 blocks of a Right operand are nonzero
enum class Blocks { all, k_up_to_n, k_from_n };

__device__ constexpr bool holds(Blocks blocks, int k, int n) {
  return blocks == Blocks::all || (blocks == Blocks::k_up_to_n ? k / 16 <= n / 16 : k / 16 >= n / 16);
}

// sums (16 x 8 Tiles) += a tile. `a`: columns from k on of the left operand; tile: [n][k], or [k][n] if Transposed.
template <bool Transposed, Blocks Held = Blocks::all, int Tiles, class E>
__device__ __forceinline__ void multiply_step(Sum (&sums)[Tiles], const Left<E>& a, int k, const E* tile, int ld,
                                              bool exact) {
  static_assert(Tiles % 2 == 0 || Transposed);
#pragma unroll
  for (int i = 0; i + 1 < Tiles; i += 2) {
    if (!holds(Held, k, 8 * i)) continue;
    Right<E> b[2];
    if constexpr (Transposed) {
      load_transposed(b, tile + k * ld + 8 * i, ld);
    } else {
      load(b, tile + 8 * i * ld + k, ld);
    }
    multiply(sums[i], a, b[0], exact);
    multiply(sums[i + 1], a, b[1], exact);
  }
  if constexpr (Tiles % 2) {
    Right<E> b;
    load_transposed(b, tile + k * ld + 8 * (Tiles - 1), ld);
    multiply(sums[Tiles - 1], a, b, exact);
  }
}

// sums += a tile, over all steps of a
template <bool Transposed, Blocks Held = Blocks::all, int Tiles, int Steps, class E>
__device__ __forceinline__ void multiply_all(Sum (&sums)[Tiles], const Left<E> (&a)[Steps], const E* tile, int ld,
                                             bool exact) {
#pragma unroll
  for (int s = 0; s < Steps; ++s) {
    multiply_step<Transposed, Held>(sums, a[s], s * Left<E>::depth, tile, ld, exact);
  }
}

// sums += left tile, where the left operand is given as Sums with 8 LeftTiles columns
template <bool Transposed, Blocks Held = Blocks::all, int Tiles, int LeftTiles, class E>
__device__ __forceinline__ void multiply_sums(Sum (&sums)[Tiles], const Sum (&left)[LeftTiles], const E* tile, int ld,
                                              bool exact) {
  constexpr int depth = Left<E>::depth;
#pragma unroll
  for (int k = 0; k < 8 * LeftTiles; k += depth) {
    Left<E> a;
    from_sums(a, left + k / 8);
    multiply_step<Transposed, Held>(sums, a, k, tile, ld, exact);
  }
}

template <int Tiles>
__device__ __forceinline__ void clear(Sum (&sums)[Tiles]) {
#pragma unroll
  for (int i = 0; i < Tiles; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  }
}

// Multiplies column n of the sums by scale[n]
template <int Tiles>
__device__ __forceinline__ void scale_columns(Sum (&sums)[Tiles], const float* scale) {
#pragma unroll
  for (int i = 0; i < Tiles; ++i) {
    const float2 s = *reinterpret_cast<const float2*>(scale + 8 * i + 2 * (lane_id() & 3));
    sums[i][0] *= s.x, sums[i][1] *= s.y;
    sums[i][2] *= s.x, sums[i][3] *= s.y;
  }
}

__device__ inline void store_pair(bf16* p, float x, float y) {
  *reinterpret_cast<uint32_t*>(p) = pack(x, y);
}
__device__ inline void store_pair(float* p, float x, float y) {
  *reinterpret_cast<float2*>(p) = make_float2(x, y);
}
// Stores all sums to row-major memory with contiguous rows
template <int Tiles, class E>
__device__ __forceinline__ void store_sums(const Sum (&sums)[Tiles], E* p, int ld) {
  E* x = p + (lane_id() >> 2) * ld + 2 * (lane_id() & 3);
#pragma unroll
  for (int i = 0; i < Tiles; ++i) {
    store_pair(x + 8 * i, sums[i][0], sums[i][1]);
    store_pair(x + 8 * i + 8 * ld, sums[i][2], sums[i][3]);
  }
}

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

}  // namespace sb::cuda
