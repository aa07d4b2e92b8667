// Shared parts of the kernels over rows: packs of eight elements as floats, sums over the threads of a row, and sums of
// parameter gradients over blocks.
#pragma once
#include <algorithm>
#include <cstring>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/rows.h"

namespace sb::cuda {

constexpr int kPack = 8;
constexpr int kThreads = 256;     // per block
constexpr int kBlocksWanted = 8;  // maximum per multiprocessor

// Accurate to a few units in float's last place
__device__ inline float sigmoid(float x) {
  return __fdividef(1.f, 1.f + __expf(-x));
}
__device__ inline float softplus(float v) {
  return v > 20 ? v : fmaxf(v, 0.f) + log1pf(expf(-fabsf(v)));
}
__device__ inline float silu_slope(float x, float sig) {
  return sig * (1.f + x * (1.f - sig));
}

// ---- packs ----

// How a thread accesses its packs of a row.
//   whole: eight adjacent columns, 16 bytes at a time; the width is a multiple of a pack
//   vectors: the same for any width
//   neighbours: eight adjacent columns, one at a time
//   scattered: for unaligned rows; columns one at a time, with a stride of the number of threads per row
enum class Access { whole, vectors, neighbours, scattered };

// A pack in the type in which it was read; elements are converted to float on access.
template <class E>
struct Raw;
template <>
struct Raw<bf16> {
  uint32_t bits[4];
  __device__ float operator[](int j) const {
    return __uint_as_float(j & 1 ? bits[j >> 1] & 0xffff0000u : bits[j >> 1] << 16);
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
  __device__ void set(int j, float x) { v[j] = x; }
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
__device__ inline void store_whole(bf16* p, const float (&v)[kPack]) {
  *reinterpret_cast<uint4*>(p) = make_uint4(pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]));
}
__device__ inline void store_whole(float* p, const float (&v)[kPack]) {
  *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
  *reinterpret_cast<float4*>(p + 4) = make_float4(v[4], v[5], v[6], v[7]);
}

// The columns of one thread of a row. A row has `Lanes` threads (0: `some`, known only at run time). Columns >= width
// read as zero. Of these, columns < padded are written as zero, the others are not written.
template <Access A, int Lanes>
struct Columns {
  int lane, width, padded, some = Lanes;
  __device__ int lanes() const { return Lanes > 0 ? Lanes : some; }
  __device__ int column(int pack, int j) const {
    return A == Access::scattered ? lane + (pack * kPack + j) * lanes() : (lane + pack * lanes()) * kPack + j;
  }
  __device__ bool inside(int pack, int j) const { return column(pack, j) < width; }
  // Whether any thread of the warp has columns in this pack; uniform across the warp
  __device__ bool used(int pack) const {
    if (Lanes <= 32 || A == Access::scattered) return true;
    return ((lane & ~31) + pack * lanes()) * kPack < width;
  }
  template <class E>
  __device__ void load(Raw<E>& raw, const E* row, int pack) const {
    const int first = column(pack, 0);
    if constexpr (A == Access::whole) {
      raw = {};
      if (first < width) load_whole(raw, row + first);
    } else if constexpr (A == Access::vectors) {
      // the 16 bytes that contain a row's last element can be read entirely
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
    if constexpr (A == Access::whole) {
      if (first < width) store_whole(row + first, v);
      return;
    }
    if (A == Access::vectors && first + kPack <= width) return store_whole(row + first, v);
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      if (column(pack, j) < padded) row[column(pack, j)] = from_float<E>(inside(pack, j) ? v[j] : 0.f);
  }
  // Reads the thread's columns of a row of parameters; `absent` beyond the width or if `from` is null
  __device__ void parameters(float (&to)[kPack], const float* from, int pack, float absent) const {
#pragma unroll
    for (int j = 0; j < kPack; ++j) to[j] = from && inside(pack, j) ? from[column(pack, j)] : absent;
  }
};

// Row r of a tensor with one head
template <class E, class Void>
__device__ E* row_of(const TokenRows<Void>& view, int64_t r) {
  return static_cast<E*>(view.data) + r * view.token;
}

// ---- sums ----

// Sums each element of v over the `Lanes` >= 32 threads of a row; every thread gets the same bits. If Lanes > 32, all
// threads of the block must call this, with `turn` alternating between 0 and 1.
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

// Assignment of threads to rows: `Lanes` threads per row or, if Lanes = 0, `lanes` <= 32 threads per row and as many
// rows as fit into a warp.
template <int Lanes>
struct RowGroups {
  int lanes, lane, group, groups;  // threads per row; index in the row; index of the row in the block; rows per block
  int leader;                      // Lanes = 0: lane of the warp where the row starts
  uint32_t takes = 0;              // Lanes = 0: bit i is set if this thread adds the value of the thread 2^i further
  __device__ explicit RowGroups(int some) {
    if constexpr (Lanes > 0) {
      lanes = Lanes, lane = threadIdx.x % Lanes, group = threadIdx.x / Lanes, groups = kThreads / Lanes;
      leader = 0;
    } else {
      const int in_warp = threadIdx.x % 32, each = 32 / some, row = in_warp / some;
      lanes = some, groups = kThreads / 32 * each;
      lane = row < each ? in_warp - row * some : 1 << 20;  // surplus threads have no columns
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

// Adds the threads' sums (each over the thread's own rows and columns) over the block's rows in order, and writes the
// result to part[column].
template <Access A, int Lanes, int Packs>
__device__ __forceinline__ void store_part(float (&sums)[Packs][kPack], const Columns<A, Lanes>& at,
                                           const RowGroups<Lanes>& rows, float* part) {
  constexpr int most = Lanes > 0 ? Lanes : 32;
  __shared__ float total[most * Packs * kPack];
  int group = rows.group, groups = rows.groups;
  if constexpr (Lanes == 0) {  // first add the rows of each warp
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
        // adjacent threads use adjacent banks
        float& to = total[(p * kPack + j) * most + at.lane];
        to = (g == 0 ? 0.f : to) + sums[p][j];
        if (g == groups - 1 && at.inside(p, j)) part[at.column(p, j)] = to;
      }
    }
  }
  __syncthreads();
}

// A thread's columns, and the rows over which its block walks
template <Access A, int Lanes>
struct RowWalk {
  RowGroups<Lanes> groups;
  Columns<A, Lanes> at;
  int step, rounds, row;
  __device__ RowWalk(int rows, int width, int lanes)
      : groups(lanes), at{groups.lane, width, width, lanes}, step(gridDim.x * groups.groups) {
    const int first = blockIdx.x * groups.groups;
    rounds = (rows - first + step - 1) / step;
    row = first + groups.group;
  }
  // Calls work(round, row, read_next) for the thread's rows, all threads equally often, so also for rows behind the
  // last one. read(row) has read the row in advance; `work` must call read_next() once it no longer needs it.
  template <class Read, class Work>
  __device__ __forceinline__ void each(Read read, Work work) const {
    read(row);
    int r = row;
    for (int round = 0; round < rounds; ++round, r += step)
      work(round, r, [&] {
        if (round + 1 < rounds) read(r + step);
      });
  }
};

// Fast n / divisor for 0 <= n < 2^31
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

// Sums parts [count][width] over the first axis, in order, to first[c] if c < split, else to second[c - split].
cudaError_t sum_parts(const float* parts, int count, int width, float* first, int split, float* second,
                      cudaStream_t stream);

// ---- launches ----

inline bool on_vectors(const void* data, int64_t token, int64_t head, int heads, size_t element) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && token * element % 16 == 0 &&
         (heads == 1 || head * element % 16 == 0);
}
// Of tensors with elements of type E
template <class E, class... Views>
bool all_on_vectors(int heads, const Views&... views) {
  return (on_vectors(views.data, views.token, views.head, heads, sizeof(E)) && ...);
}

// Blocks for a kernel with a grid-stride loop: as many as can run at once, but at most `rows_left` and `most`.
template <class Kernel>
int walking_blocks(Kernel kernel, int64_t rows_left, int most = kMaxParts) {
  int each = 1;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, kThreads, 0);
  const int64_t at_once = static_cast<int64_t>(multiprocessors()) * std::max(1, std::min(each, kBlocksWanted));
  return static_cast<int>(std::max<int64_t>(1, std::min({rows_left, at_once, static_cast<int64_t>(most)})));
}

// Launches a kernel with a RowWalk over q.rows rows of `Lanes` or, if Lanes = 0, q.lanes threads. `blocks` gets their
// number, at most `most`.
template <int Lanes, class Rows>
cudaError_t launch_walk(void (*kernel)(Rows), const Rows& q, cudaStream_t stream, int most = 1 << 30,
                        int* blocks = nullptr) {
  const int each = Lanes > 0 ? kThreads / Lanes : kThreads / 32 * (32 / q.lanes);
  const int count = walking_blocks(kernel, (q.rows + each - 1) / each, most);
  if (blocks) *blocks = count;
  kernel<<<count, kThreads, 0, stream>>>(q);
  return cudaGetLastError();
}

// Numbers the packs of all rows consecutively, for kernels that can assign any pack to any thread
struct PackCount {
  int packs;    // per row
  int64_t all;  // < 2^31
  Division by_row;
  PackCount(int64_t rows, int width)
      : packs((width + kPack - 1) / kPack), all(rows * packs), by_row(static_cast<uint32_t>(packs)) {}
  bool valid() const { return all < int64_t{1} << 31; }
  int64_t blocks() const { return (all + kThreads - 1) / kThreads; }
};
// Calls body(row, pack) for all packs
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
