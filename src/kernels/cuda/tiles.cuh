// Tiles in shared memory (row-major, rows padded by 16 or 32 bytes), fragments of them in the registers of a warp, and
// products. Throughout, lane l is (g, t) = (l / 4, l % 4).
//   Sum      16 x 8 floats; a lane holds (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)
//   Left<E>  16 x depth operand, depth = 16 for bf16, 8 for float; the columns of a Sum can become columns of a Left
//   Right<E> depth x 8 operand
// For float, the hardware's k index t stands for column 2t, and t + 4 for column 2t + 1, in both operands. With this
// order a Sum becomes a Left without exchange between lanes, as for bf16. Products of two tiles need no such order:
// their float operands are Tf32, in the hardware's order and rounded when loaded.
#pragma once
#include "kernels/cuda/lanes.cuh"
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

// Operand of a product of two tiles, rounded to TF32; `split` keeps the rest, for three products.
template <int Count, bool split>
struct Tf32 {
  uint32_t r[Count], rest[split ? Count : 1];
  __device__ void set(int i, float value) {
    r[i] = convert_to_tf32(value);
    if constexpr (split) rest[i] = convert_to_tf32(value - __uint_as_float(r[i]));
  }
};

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

// c += a b with float accuracy, as three products of TF32 parts. These are summed separately and then added to c,
// because tensor cores truncate sums, while this addition rounds.
__device__ inline void multiply_parts(Sum& c, const uint32_t (&a)[4], const uint32_t (&a_rest)[4],
                                      const uint32_t (&b)[2], const uint32_t (&b_rest)[2]) {
  Sum product = {0, 0, 0, 0};
  mma_tf32(product, a_rest, b);
  mma_tf32(product, a, b_rest);
  mma_tf32(product, a, b);
#pragma unroll
  for (int i = 0; i < 4; ++i) c[i] += product[i];
}
// c += a b. `exact`: with float accuracy, if the operands are float
__device__ inline void multiply(Sum& c, const Left<bf16>& a, const Right<bf16>& b, bool = false) {
  mma_bf16(c, a.r, b.r);
}
__device__ inline void multiply(Sum& c, const Left<float>& a, const Right<float>& b, bool exact) {
  uint32_t high_a[4], high_b[2];
  for (int i = 0; i < 4; ++i) high_a[i] = to_tf32(a.r[i]);
  for (int i = 0; i < 2; ++i) high_b[i] = to_tf32(b.r[i]);
  if (!exact) return mma_tf32(c, high_a, high_b);
  uint32_t low_a[4], low_b[2];
  for (int i = 0; i < 4; ++i) low_a[i] = tf32_rest(a.r[i], high_a[i]);
  for (int i = 0; i < 2; ++i) low_b[i] = tf32_rest(b.r[i], high_b[i]);
  multiply_parts(c, high_a, low_a, high_b, low_b);
}
template <bool split>
__device__ inline void multiply(Sum& c, const Tf32<4, split>& a, const Tf32<2, split>& b) {
  if constexpr (split)
    multiply_parts(c, a.r, a.rest, b.r, b.rest);
  else
    mma_tf32(c, a.r, b.r);
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

// Type of the operands of a product of two tiles, and its arithmetic. fp32 is a product of Tf32 operands with rests.
enum class Product { bf16, tf32, fp32 };

template <Product P>
struct Operands {
  using Element = float;
  static constexpr int depth = 8;  // of one mma instruction
  using A = Tf32<4, P == Product::fp32>;
  using B = Tf32<2, P == Product::fp32>;
};
template <>
struct Operands<Product::bf16> {
  using Element = bf16;
  static constexpr int depth = Left<bf16>::depth;
  using A = Left<bf16>;
  using B = Right<bf16>;
};
template <Product P>
using Operand = typename Operands<P>::Element;

// Row stride of such a tile, in elements: 16 bytes more than the columns, to avoid bank conflicts.
template <class E>
__host__ __device__ constexpr int leading(int columns) {
  return columns + 16 / static_cast<int>(sizeof(E));
}

// Which axis of an operand in shared memory is summed over: the contiguous one (fast) or the other one (slow).
enum class Depth { fast, slow };

// A lane's element of an operand's 8 x 8 matrices, ordered first down the columns, or first along the rows
__device__ inline int down_first(int lane, int ld) {
  return lane % 16 * ld + lane / 16 * 8;
}
__device__ inline int along_first(int lane, int ld) {
  return (lane / 16 * 8 + lane % 8) * ld + lane / 8 % 2 * 8;
}

// Loads a left operand, or N right ones
template <Depth order>
__device__ inline void load_operand(Left<bf16>& a, const bf16* p, int ld, int lane) {
  if constexpr (order == Depth::fast)
    load_matrices(a.r, p + down_first(lane, ld));
  else
    load_matrices_transposed(a.r, p + along_first(lane, ld));
}
template <Depth order, int N>
__device__ inline void load_operand(Right<bf16> (&b)[N], const bf16* p, int ld, int lane) {
  const bf16* row = p + (order == Depth::fast ? along_first(lane, ld) : down_first(lane, ld));
  const int next = order == Depth::fast ? 16 * ld : 16;
#pragma unroll
  for (int n = 0; n + 1 < N; n += 2) {
    uint32_t r[4];
    if constexpr (order == Depth::fast)
      load_matrices(r, row + n / 2 * next);
    else
      load_matrices_transposed(r, row + n / 2 * next);
    b[n] = {{r[0], r[1]}}, b[n + 1] = {{r[2], r[3]}};
  }
  if constexpr (N % 2 == 1 && order == Depth::fast) load_matrices(b[N - 1].r, row + N / 2 * next);
  if constexpr (N % 2 == 1 && order == Depth::slow) load_matrices_transposed(b[N - 1].r, row + N / 2 * next);
}
template <Depth order, bool split>
__device__ inline void load_operand(Tf32<4, split>& a, const float* p, int ld, int lane) {
  const int row = lane / 4, t = lane % 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int m = row + i % 2 * 8, k = t + i / 2 * 4;
    a.set(i, order == Depth::fast ? p[m * ld + k] : p[k * ld + m]);
  }
}
template <Depth order, bool split, int N>
__device__ inline void load_operand(Tf32<2, split> (&b)[N], const float* p, int ld, int lane) {
  const int column = lane / 4, t = lane % 4;
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int c = n * 8 + column, k = t + i * 4;
      b[n].set(i, order == Depth::fast ? p[c * ld + k] : p[k * ld + c]);
    }
  }
}

// sums += a b for one warp, with 16 M rows and 8 N columns. depth <= Most; both are multiples of 16.
template <Product P, Depth a_order, Depth b_order, int Most, int M, int N>
__device__ inline void multiply(Sum (&sums)[M][N], const Operand<P>* a, int lda, const Operand<P>* b, int ldb, int lane,
                                int depth = Most) {
  constexpr int step = Operands<P>::depth, steps = Most / step, unrolled = steps <= 8 ? steps : 4;
#pragma unroll unrolled
  for (int d = 0; d < Most; d += step) {
    if (d >= depth) break;
    typename Operands<P>::B right[N];
    load_operand<b_order>(right, b + (b_order == Depth::fast ? d : d * ldb), ldb, lane);
#pragma unroll
    for (int m = 0; m < M; ++m) {
      typename Operands<P>::A left;
      load_operand<a_order>(left, a + (a_order == Depth::fast ? m * 16 * lda + d : d * lda + m * 16), lda, lane);
#pragma unroll
      for (int n = 0; n < N; ++n) multiply(sums[m][n], left, right[n]);
    }
  }
}

template <int M, int N>
__device__ inline void clear(Sum (&sums)[M][N]) {
#pragma unroll
  for (int m = 0; m < M; ++m) clear(sums[m]);
}

// Position of a thread among the warps of a product of two tiles
struct Place {
  int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32, row = lane / 4, pair = lane % 4;
  int strip = warp % 4, half = warp / 4;  // 4 strips of 16 rows x 2 halves (or 4 quarters) of the columns
};

// Calls body(row, column, first, second) for each pair of adjacent elements that the thread holds.
template <int M, int N, class Body>
__device__ inline void for_pairs(Sum (&sums)[M][N], const Place& at, const Body& body) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; i += 2)
        body(m * 16 + i / 2 * 8 + at.row, n * 8 + at.pair * 2, sums[m][n][i], sums[m][n][i + 1]);
}

}  // namespace sb::cuda
