// Tiles of the attention kernels: warp-level products of tiles in shared memory, loads and stores of tiles, and the
// decays of a chunk. A block has eight warps; a chunk has 64 steps.
#pragma once
#include "kernels/cuda/decayed_attention.h"
#include "kernels/cuda/ptx.cuh"

namespace sb::cuda::attention {

inline constexpr int kBlock = 256;

// Type of a product's operands in shared memory, and arithmetic of the product. fp32 splits operands into two TF32
// parts and makes three products.
enum class Product { bf16, tf32, fp32 };

template <Product>
struct ProductTraits {
  using Element = float;
  static constexpr int depth = 8;  // of one mma instruction
};
template <>
struct ProductTraits<Product::bf16> {
  using Element = __nv_bfloat16;
  static constexpr int depth = 16;
};
template <Product P>
using Element = typename ProductTraits<P>::Element;

// Row stride of a tile in shared memory, in elements: 16 bytes more than the columns, to avoid bank conflicts.
template <class E>
__host__ __device__ constexpr int leading(int columns) {
  return columns + 16 / static_cast<int>(sizeof(E));
}

__device__ inline void store_pair(float* p, float x, float y) {
  *reinterpret_cast<float2*>(p) = {x, y};
}
__device__ inline void store_pair(__nv_bfloat16* p, float x, float y) {
  *reinterpret_cast<__nv_bfloat162*>(p) = __floats2bfloat162_rn(x, y);
}
__device__ inline float2 load_pair(const float* p) {
  return *reinterpret_cast<const float2*>(p);
}
__device__ inline float2 load_pair(const __nv_bfloat16* p) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(p));
}

// Position of a thread. Of a 16 x 8 tile, the thread's accumulator acc[4] holds columns 2 pair and 2 pair + 1 of rows
// `row` and `row` + 8.
struct Place {
  int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32, row = lane / 4, pair = lane % 4;
  int strip = warp % 4, half = warp / 4;  // 4 strips of 16 rows x 2 halves (or 4 quarters) of the columns
};

// Which axis of an operand in shared memory is summed over: the contiguous one (fast) or the other one (slow).
enum class Depth { fast, slow };

template <Product P>
struct Fragment;

template <>
struct Fragment<Product::bf16> {
  using E = __nv_bfloat16;
  template <int Count, bool transposed>
  __device__ static void load(uint32_t (&x)[Count], const E* address) {
    const uint32_t s = static_cast<uint32_t>(__cvta_generic_to_shared(address));
    if constexpr (Count == 4 && !transposed)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(s));
    if constexpr (Count == 4 && transposed)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(s));
    if constexpr (Count == 2 && !transposed)
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(x[0]), "=r"(x[1]) : "r"(s));
    if constexpr (Count == 2 && transposed)
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(x[0]), "=r"(x[1]) : "r"(s));
  }
  // Order of the 8 x 8 matrices of a fragment: first down the columns, or first along the rows.
  __device__ static int down_first(int lane, int ld) { return lane % 16 * ld + lane / 16 * 8; }
  __device__ static int along_first(int lane, int ld) { return (lane / 16 * 8 + lane % 8) * ld + lane / 8 % 2 * 8; }

  struct A {
    uint32_t x[4];
  };
  struct B {
    uint32_t x[2];
  };
  template <Depth order>
  __device__ static A load_a(const E* s, int ld, int lane) {
    A a;
    if constexpr (order == Depth::fast)
      load<4, false>(a.x, s + down_first(lane, ld));
    else
      load<4, true>(a.x, s + along_first(lane, ld));
    return a;
  }
  template <Depth order, int N>
  __device__ static void load_b(B (&b)[N], const E* s, int ld, int lane) {
    const E* address = s + (order == Depth::fast ? along_first(lane, ld) : down_first(lane, ld));
    const int16_t columns = 16;
#pragma unroll
    for (int n = 0; n + 1 < N; n += 2) {
      uint32_t x[4];
      load<4, order == Depth::slow>(x, address + n / 2 * (order == Depth::fast ? columns * ld : columns));
      b[n] = {x[0], x[1]};
      b[n + 1] = {x[2], x[3]};
    }
    if constexpr (N % 2 == 1)
      load<2, order == Depth::slow>(b[N - 1].x, address + N / 2 * (order == Depth::fast ? columns * ld : columns));
  }
  __device__ static void multiply(float (&c)[4], const A& a, const B& b) {
    mma_bf16(c, a.x, b.x);
  }
};

__device__ inline uint32_t to_tf32(float x) {
  uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
template <bool split>
struct FloatFragment {
  using E = float;
  template <int Count>
  struct Operand {
    uint32_t x[Count], rest[split ? Count : 1];
    __device__ void set(int i, float value) {
      x[i] = to_tf32(value);
      if constexpr (split) rest[i] = to_tf32(value - __uint_as_float(x[i]));
    }
  };
  using A = Operand<4>;
  using B = Operand<2>;
  template <Depth order>
  __device__ static A load_a(const E* s, int ld, int lane) {
    const int row = lane / 4, t = lane % 4;
    A a;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int m = row + i % 2 * 8, k = t + i / 2 * 4;
      a.set(i, order == Depth::fast ? s[m * ld + k] : s[k * ld + m]);
    }
    return a;
  }
  template <Depth order, int N>
  __device__ static void load_b(B (&b)[N], const E* s, int ld, int lane) {
    const int column = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int c = n * 8 + column, k = t + i * 4;
        b[n].set(i, order == Depth::fast ? s[c * ld + k] : s[k * ld + c]);
      }
    }
  }
  __device__ static void multiply(float (&c)[4], const A& a, const B& b) {
    if constexpr (split) {  // tensor cores truncate sums; this addition rounds to nearest
      float sum[4] = {0, 0, 0, 0};
      mma_tf32(sum, a.rest, b.x);
      mma_tf32(sum, a.x, b.rest);
      mma_tf32(sum, a.x, b.x);
#pragma unroll
      for (int i = 0; i < 4; ++i) c[i] += sum[i];
    } else {
      mma_tf32(c, a.x, b.x);
    }
  }
};
template <>
struct Fragment<Product::tf32> : FloatFragment<false> {};
template <>
struct Fragment<Product::fp32> : FloatFragment<true> {};

// acc += a b for one warp, with 16 M rows and 8 N columns. depth <= Most; both are multiples of 16.
template <Product P, Depth a_order, Depth b_order, int Most, int M, int N>
__device__ inline void multiply(float (&acc)[M][N][4], const Element<P>* a, int lda, const Element<P>* b, int ldb,
                                int lane, int depth = Most) {
  using F = Fragment<P>;
  constexpr int step = ProductTraits<P>::depth, steps = Most / step, unrolled = steps <= 8 ? steps : 4;
#pragma unroll unrolled
  for (int d = 0; d < Most; d += step) {
    if (d >= depth) break;
    typename F::B right[N];
    F::template load_b<b_order, N>(right, b + (b_order == Depth::fast ? d : d * ldb), ldb, lane);
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const typename F::A left =
          F::template load_a<a_order>(a + (a_order == Depth::fast ? m * 16 * lda + d : d * lda + m * 16), lda, lane);
#pragma unroll
      for (int n = 0; n < N; ++n) F::multiply(acc[m][n], left, right[n]);
    }
  }
}

template <int M, int N>
__device__ inline void clear(float (&acc)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[m][n][i] = 0;
}

// Calls body(row, column, first, second) for each pair of adjacent elements that the thread holds.
template <int M, int N, class Body>
__device__ inline void for_pairs(float (&acc)[M][N][4], const Place& at, const Body& body) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; i += 2)
        body(m * 16 + i / 2 * 8 + at.row, n * 8 + at.pair * 2, acc[m][n][i], acc[m][n][i + 1]);
}

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
__device__ inline void finish_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
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

__device__ inline double shift_up(double x, int by, int lane) {
  const double y = __shfl_up_sync(~0u, x, by);
  return lane >= by ? y : 0;
}

// Decays of a chunk with one factor per step. Sums of logarithms are in double, so that their differences stay accurate
// after a strong decay. For bf16 products, sums of base-2 logarithms in float are sufficient.
struct StepDecays {
  double sum[kChunk];       // sum of the log-decays of steps 0..i
  float short_sum[kChunk];  // the same in base 2
  float since[kChunk];      // e^{sum_i}: from the chunk's start to after step i
  float until[kChunk];      // from after step i to the chunk's end
  __device__ float total() const { return since[kChunk - 1]; }
  // Decay from after step j to after step i >= j; 0 for i < j
  template <Product P>
  __device__ float between(int j, int i) const {
    if constexpr (P == Product::bf16)
      return i < j ? 0.f : exp2_fast(short_sum[i] - short_sum[j]);
    else
      return i < j ? 0.f : expf(static_cast<float>(sum[i] - sum[j]));
  }
  // Executed by one warp. g: log-decays from the chunk's first step on; null: no decay. Log-decays are clamped at -200,
  // where the factor is 0 anyway.
  __device__ void scan(const float* g, int64_t stride, int steps, int lane) {
    double x[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = 2 * lane + i;
      x[i] = g && t < steps ? fmaxf(g[t * stride], -200.f) : 0.;
    }
    double before = x[0] + x[1];
#pragma unroll
    for (int by = 1; by < 32; by *= 2) before += shift_up(before, by, lane);
    const double all = __shfl_sync(~0u, before, 31);
    before = shift_up(before, 1, lane);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      before += x[i];
      sum[2 * lane + i] = before;
      short_sum[2 * lane + i] = static_cast<float>(before * 1.4426950408889634);
      since[2 * lane + i] = expf(static_cast<float>(before));
      until[2 * lane + i] = expf(static_cast<float>(all - before));
    }
  }
};

}  // namespace sb::cuda::attention
