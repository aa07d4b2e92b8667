// What the kernels over rows share: elements as floats in packs of eight, sums over the threads of a row, sums of
// parameters' gradients over blocks.
#pragma once
#include <algorithm>
#include <cstring>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/rows.h"

namespace sb::cuda {

constexpr int kPack = 8;
constexpr int kThreads = 256;     // of a block over rows
constexpr int kBlocksWanted = 8;  // a multiprocessor, at most

// e^x and the functions of it to a few units of float's last place
__device__ inline float sigmoid(float x) {
  return __fdividef(1.f, 1.f + __expf(-x));
}
__device__ inline float silu_slope(float x, float sig) {
  return sig * (1.f + x * (1.f - sig));
}

// ---- packs ----

// How a thread's pack lies in a row: eight neighbours moved in pieces of 16 bytes (`whole`: rows of whole packs;
// `padded`: the last pack's columns after the width are written as zeros; `vectors`: they are left alone), the same one
// by one, or (rows at odd places) columns as far apart as a row has threads, one by one.
enum class Access { whole, padded, vectors, neighbours, scattered };

// A pack as it was read; turned to floats when it is needed.
template <class E>
struct Raw;
template <>
struct Raw<bf16> {
  uint32_t bits[4];
  __device__ float operator[](int j) const {
    return __uint_as_float(j & 1 ? bits[j >> 1] & 0xffff0000u : bits[j >> 1] << 16);
  }
  // Only the first `count` elements stay.
  __device__ void cut(int count) {
#pragma unroll
    for (int i = 0; i < 4; ++i) bits[i] &= count >= 2 * i + 2 ? 0xffffffffu : count == 2 * i + 1 ? 0xffffu : 0u;
  }
  __device__ void set(int j, bf16 x) {
    const uint32_t half = __bfloat16_as_ushort(x);
    bits[j >> 1] = j & 1 ? (bits[j >> 1] & 0xffffu) | half << 16 : (bits[j >> 1] & 0xffff0000u) | half;
  }
};
template <>
struct Raw<float> {
  float v[8];
  __device__ float operator[](int j) const { return v[j]; }
  __device__ void cut(int count) {
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j] = j < count ? v[j] : 0.f;
  }
  __device__ void set(int j, float x) {
    v[j] = x;
  }
};

__device__ inline void load_whole(Raw<bf16>& raw, const bf16* p) {
  const uint4 x = *reinterpret_cast<const uint4*>(p);
  raw.bits[0] = x.x, raw.bits[1] = x.y, raw.bits[2] = x.z, raw.bits[3] = x.w;
}
__device__ inline void load_whole(Raw<float>& raw, const float* p) {
  const float4 a = *reinterpret_cast<const float4*>(p), b = *reinterpret_cast<const float4*>(p + 4);
  raw.v[0] = a.x, raw.v[1] = a.y, raw.v[2] = a.z, raw.v[3] = a.w;
  raw.v[4] = b.x, raw.v[5] = b.y, raw.v[6] = b.z, raw.v[7] = b.w;
}
__device__ inline uint32_t pair_bits(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, 4);
  return bits;
}
__device__ inline void store_whole(bf16* p, const float (&v)[kPack]) {
  *reinterpret_cast<uint4*>(p) =
      make_uint4(pair_bits(v[0], v[1]), pair_bits(v[2], v[3]), pair_bits(v[4], v[5]), pair_bits(v[6], v[7]));
}
__device__ inline void store_whole(float* p, const float (&v)[kPack]) {
  *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
  *reinterpret_cast<float4*>(p + 4) = make_float4(v[4], v[5], v[6], v[7]);
}

// The columns of one of a row's `Lanes` threads (0: said when it runs). Columns from `width` on read as zero and are
// not written, but for those up to `padded`, which are written as zero.
template <Access A, int Lanes>
struct Columns {
  int lane, width, padded, some = Lanes;
  __device__ int lanes() const { return Lanes > 0 ? Lanes : some; }
  __device__ int column(int pack, int j) const {
    return A == Access::scattered ? lane + (pack * kPack + j) * lanes() : (lane + pack * lanes()) * kPack + j;
  }
  __device__ bool inside(int pack, int j) const { return column(pack, j) < width; }
  // Whether a thread of the warp has any of the pack; the same for the whole warp
  __device__ bool used(int pack) const {
    if (Lanes <= 32 || A == Access::scattered) return true;
    return ((lane & ~31) + pack * lanes()) * kPack < width;
  }
  template <class E>
  __device__ void load(Raw<E>& raw, const E* row, int pack) const {
    const int first = column(pack, 0);
    if constexpr (A == Access::whole || A == Access::padded) {
      raw = {};
      if (A == Access::whole || sizeof(E) == 2 || first + kPack <= width) {
        if (first < width) load_whole(raw, row + first);
        if constexpr (A == Access::padded) raw.cut(width - first);
      } else {  // not both pieces of 16 bytes need be there
#pragma unroll
        for (int j = 0; j < kPack; ++j)
          if (first + j < width) raw.set(j, row[first + j]);
      }
    } else if constexpr (A == Access::vectors) {
      // the piece of 16 bytes with a row's last element lies in memory as a whole
      if (first < width && sizeof(E) == 2) {
        load_whole(raw, row + first);
      } else if (first + kPack <= width) {
        load_whole(raw, row + first);
      } else {
#pragma unroll
        for (int j = 0; j < kPack; ++j) raw.set(j, first + j < width ? row[first + j] : E(0.f));
      }
      if (first < width && first + kPack > width) {
#pragma unroll
        for (int j = 0; j < kPack; ++j)
          if (first + j >= width) raw.set(j, E(0.f));
      }
    } else {
#pragma unroll
      for (int j = 0; j < kPack; ++j) raw.set(j, inside(pack, j) ? row[column(pack, j)] : E(0.f));
    }
  }
  template <class E>
  __device__ void store(E* row, int pack, const float (&v)[kPack]) const {
    const int first = column(pack, 0);
    if constexpr (A == Access::whole || A == Access::padded) {  // v is zero where what was read is
      if (first < width) store_whole(row + first, v);
      return;
    }
    if (A == Access::vectors && first + kPack <= width) return store_whole(row + first, v);
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      if (column(pack, j) < padded) row[column(pack, j)] = from_float<E>(inside(pack, j) ? v[j] : 0.f);
  }
  // A row of parameters
  __device__ void parameters(float (&to)[kPack], const float* from, int pack, float absent) const {
#pragma unroll
    for (int j = 0; j < kPack; ++j) to[j] = from && inside(pack, j) ? from[column(pack, j)] : absent;
  }
};

// ---- sums ----

// Each of v summed over the `Lanes` >= 32 threads of a row; every thread gets the same bits. Above a warp, all threads
// of the block must come here, and `turn` alternates between 0 and 1.
template <int Lanes, int N>
__device__ __forceinline__ void sum_over_row(float (&v)[N], int turn) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] += __shfl_xor_sync(0xffffffffu, v[i], step);
  }
  if constexpr (Lanes > 32) {
    __shared__ float shared[2][kThreads / 32][N];
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) shared[turn][warp][i] = v[i];
    }
    __syncthreads();
    const int first = warp / (Lanes / 32) * (Lanes / 32);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      v[i] = 0;
#pragma unroll
      for (int w = 0; w < Lanes / 32; ++w) v[i] += shared[turn][first + w][i];
    }
  }
}

// How threads share rows: `Lanes` threads a row, or (Lanes = 0) as many rows of `lanes` <= 32 threads as a warp holds.
template <int Lanes>
struct RowGroups {
  int lanes, lane, group, groups;  // of a row; in it; of the block, the last two
  int leader;                      // Lanes = 0: lane of the warp where the row starts
  uint32_t takes = 0;              // Lanes = 0: bit i: adds what the thread 2^i further has
  __device__ explicit RowGroups(int some) {
    if constexpr (Lanes > 0) {
      lanes = Lanes, lane = threadIdx.x % Lanes, group = threadIdx.x / Lanes, groups = kThreads / Lanes;
      leader = 0;
    } else {
      const int in_warp = threadIdx.x % 32, each = 32 / some, row = in_warp / some;
      lanes = some, groups = kThreads / 32 * each;
      lane = row < each ? in_warp - row * some : 1 << 20;  // threads left over have no columns
      group = threadIdx.x / 32 * each + min(row, each - 1);
      leader = row < each ? row * some : 0;
      for (int i = 0; i < 5; ++i)
        if (lane < 1 << i && lane + (1 << i) < lanes) takes |= 1u << i;
    }
  }
  template <int N>
  __device__ __forceinline__ void sum(float (&v)[N], int turn) const {
    if constexpr (Lanes > 0) {
      sum_over_row<Lanes>(v, turn);
    } else {
#pragma unroll
      for (int i = 4; i >= 0; --i) {
        if (lanes <= 1 << i) continue;
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const float other = __shfl_down_sync(0xffffffffu, v[k], 1 << i);
          if (takes >> i & 1) v[k] += other;
        }
      }
#pragma unroll
      for (int k = 0; k < N; ++k) v[k] = __shfl_sync(0xffffffffu, v[k], leader);
    }
  }
};

// A thread's sums over its rows (of the columns it owns), added over the block's rows in order, to part[column].
template <Access A, int Lanes, int Packs>
__device__ __forceinline__ void store_part(float (&sums)[Packs][kPack], const Columns<A, Lanes>& at,
                                           const RowGroups<Lanes>& rows, float* part) {
  constexpr int most = Lanes > 0 ? Lanes : 32;
  __shared__ float total[most * Packs * kPack];
  int group = rows.group, groups = rows.groups;
  if constexpr (Lanes == 0) {  // the rows of a warp first
    const int each = 32 / rows.lanes;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float own = sums[p][j];
        for (int row = 1; row < each; ++row)
          sums[p][j] += __shfl_sync(0xffffffffu, own, (threadIdx.x + row * rows.lanes) % 32);
      }
    }
    group = threadIdx.x % 32 < rows.lanes ? static_cast<int>(threadIdx.x / 32) : -1;
    groups = kThreads / 32;
  }
  for (int g = 0; g < groups; ++g) {
    __syncthreads();
    if (group != g) continue;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        // neighbours of a warp in neighbouring banks
        float& to = total[(p * kPack + j) * most + at.lane];
        to = (g == 0 ? 0.f : to) + sums[p][j];
        if (g == groups - 1 && at.inside(p, j)) part[at.column(p, j)] = to;
      }
    }
  }
  __syncthreads();
}

// work(ahead, round, row) for a thread's rows, each read the round before; work itself reads the next one, once it has
// taken what it needs.
template <class Ahead, class Read, class Work>
__device__ __forceinline__ void walk_rows(Ahead& ahead, int rounds, int row, int step, Read read, Work work) {
  read(ahead, row);
  for (int round = 0; round < rounds; ++round, row += step) work(ahead, round, row);
}

// n / divisor for 0 <= n < 2^31
struct Division {
  uint32_t factor = 0, shift = 0;
  explicit Division(uint32_t divisor) {
    if (divisor == 1) return;
    uint32_t bits = 0;
    while (uint64_t{1} << bits < divisor) ++bits;
    factor = static_cast<uint32_t>(((uint64_t{1} << (31 + bits)) + divisor - 1) / divisor);
    shift = bits - 1;
  }
  __device__ uint32_t operator()(uint32_t n) const { return factor ? __umulhi(n, factor) >> shift : n; }
};

// first[c] or second[c - split] = sum over parts [count][width], in order
cudaError_t sum_parts(const float* parts, int count, int width, float* first, int split, float* second,
                      cudaStream_t stream);

// ---- launches ----

inline bool on_vectors(const void* data, int64_t token, int64_t head, int heads, size_t element) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && token * element % 16 == 0 &&
         (heads == 1 || head * element % 16 == 0);
}

// Blocks of a kernel that walks rows by strides of its grid: as many as run at once, or fewer rows.
template <class Kernel>
int walking_blocks(Kernel kernel, int64_t rows_left, int most = kMostParts) {
  int each = 1;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, kThreads, 0);
  const int64_t at_once = static_cast<int64_t>(multiprocessors()) * std::max(1, std::min(each, kBlocksWanted));
  return static_cast<int>(std::max<int64_t>(1, std::min({rows_left, at_once, static_cast<int64_t>(most)})));
}

// Packs of rows counted through, for kernels whose threads take any of them
struct PackCount {
  int packs;    // of a row
  int64_t all;  // < 2^31
  Division by_row;
  PackCount(int64_t rows, int width)
      : packs((width + kPack - 1) / kPack), all(rows * packs), by_row(static_cast<uint32_t>(packs)) {}
  bool valid() const { return all < int64_t{1} << 31; }
  int64_t blocks() const { return (all + kThreads - 1) / kThreads; }
};
// body(row, pack) for all of them
template <class Body>
__device__ __forceinline__ void for_packs(const PackCount& count, Body body) {
  for (int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; e < count.all;
       e += static_cast<int64_t>(gridDim.x) * kThreads) {
    const auto row = static_cast<int>(count.by_row(static_cast<uint32_t>(e)));
    body(row, static_cast<int>(e) - row * count.packs);
  }
}

// f<E>() for the element's type
template <class F>
cudaError_t with_element(Element e, F&& f) {
  return e == Element::bf16 ? f.template operator()<bf16>() : f.template operator()<float>();
}

}  // namespace sb::cuda
