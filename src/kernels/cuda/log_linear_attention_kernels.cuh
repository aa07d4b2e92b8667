// Shared parts of the log-linear attention kernels: sizes, the workspace, and the weights of pairs of frames. A block
// has four warps. Each has 16 rows of a tile of 64 x 64 pairs, in the layout of Sum (tiles.cuh).
#pragma once
#include "kernels/cuda/log_linear_attention.h"
#include "kernels/cuda/sizes.h"
#include "kernels/cuda/tile_copies.cuh"

namespace sb::cuda::log_linear {

inline constexpr int kTile = 64, kPairs = kTile * kTile, kThreads = 128, kWarps = kThreads / 32;
inline constexpr int kInnerLevels = 7;  // levels of the pairs of a diagonal tile
template <class E>
inline constexpr int kBlocksAtOnce = sizeof(E) == 2 ? 3 : 2;  // per multiprocessor

__host__ __device__ inline int highest_bit(unsigned x) {
#ifdef __CUDA_ARCH__
  return 31 - __clz(static_cast<int>(x));
#else
  return 31 - __builtin_clz(x);
#endif
}

// Number of the tile of rows I and columns J <= I
__host__ __device__ inline int pair_of(int I, int J) {
  return I * (I + 1) / 2 + J;
}

struct Sizes {
  int B, T, H, G, K, V, L;
  int tiles, padded, pairs, per_group;
  int levels;  // that occur
  explicit Sizes(const LogLinearAttention& p)
      : B(static_cast<int>(p.batch)),
        T(static_cast<int>(p.time)),
        H(static_cast<int>(p.heads)),
        G(static_cast<int>(p.groups)),
        K(static_cast<int>(p.key_width)),
        V(static_cast<int>(p.value_width)),
        L(static_cast<int>(p.levels)),
        tiles((T + kTile - 1) / kTile),
        padded(tiles * kTile),
        pairs(pair_of(tiles, 0)),
        per_group(H / G),
        levels(tiles == 1 ? kInnerLevels : level_of(tiles - 1, 0) + 1) {}
  // Level of all pairs of frames of tiles I > J
  __host__ __device__ int level_of(int I, int J) const {
    const int level = kInnerLevels + highest_bit(static_cast<unsigned>(I ^ J));
    return level < L ? level : L - 1;
  }
};

struct Workspace {
  float* scores;   // [B,G,pairs,64,64], then their gradients
  double* starts;  // [B,H,tiles + 1]: sums of log-decays, in base 2, before each tile
  float2* sums;    // [B,H,padded]: sums inside the tile, up to and including the frame, as a float and the rest
  float* since;    // [B,H,padded]: decay from the tile's start to after the frame
  float* until;    // [B,H,padded]: decay from after the frame to the tile's end
  float* weights;  // [B,H,levels,padded], 0 behind the last frame
  // Backward pass. Of every row or column of a tile, the sum of the gradients of its pairs' weights:
  float* of_rows;     // [B,H,pairs,64], without the level's weight; not of diagonal tiles
  float* of_levels;   // [B,H,tiles,7,64]: the same of diagonal tiles, by level
  float* of_columns;  // [B,H,pairs,64], without pairs of equal frames
  size_t bytes;
  Workspace(void* memory, const Sizes& z, bool backward) {
    size_t used = 0;
    const auto take = [&](auto*& to, size_t count) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(static_cast<char*>(memory) + used);
      used += rounded(count * sizeof(*to));
    };
    const size_t heads = static_cast<size_t>(z.B) * z.H, rows = heads * z.padded;
    take(scores, static_cast<size_t>(z.B) * z.G * z.pairs * kPairs);
    take(starts, heads * (z.tiles + 1));
    take(sums, rows);
    take(since, rows);
    take(until, rows);
    take(weights, rows * z.levels);
    const size_t sums_of = backward ? heads * kTile : 0;
    take(of_rows, sums_of * z.pairs);
    take(of_levels, sums_of * z.tiles * kInnerLevels);
    take(of_columns, sums_of * z.pairs);
    bytes = used;
  }
};

struct Arguments {
  LogLinearAttention p;
  Sizes z;
  Workspace w;
};

// Factors of the weights of a tile's pairs, in shared memory
struct Factors {
  static constexpr int stride = kTile + 8;
  float weight[kInnerLevels][stride];  // by row; outside the diagonal only the first, that of the tile's level
  float since[kTile], until[kTile];    // of rows, of columns; outside the diagonal
  float2 sums[kTile];                  // on the diagonal

  // Starts copying those of tile (I, J) of a sequence's head; called by all threads
  __device__ void copy(const Arguments& a, int64_t head, int I, int J, int thread) {
    const Sizes& z = a.z;
    const auto weights = [&](int level) { return a.w.weights + (head * z.levels + level) * z.padded + I * kTile; };
    if (I == J) {
      constexpr int parts = kTile / 4;
      for (int i = thread; i < (kInnerLevels + 2) * parts; i += kThreads) {
        const int level = i / parts, part = i % parts;
        if (level < kInnerLevels)
          copy_async(weight[level] + 4 * part, weights(level) + 4 * part, 16);
        else
          copy_async(sums + 2 * (i - kInnerLevels * parts),
                     a.w.sums + head * z.padded + I * kTile + 2 * (i - kInnerLevels * parts), 16);
      }
    } else {
      const int part = thread % 16 * 4;
      if (thread < 16) copy_async(weight[0] + part, weights(z.level_of(I, J)) + part, 16);
      if (thread / 16 == 1) copy_async(since + part, a.w.since + head * z.padded + I * kTile + part, 16);
      if (thread / 16 == 2) copy_async(until + part, a.w.until + head * z.padded + J * kTile + part, 16);
    }
  }
  // Decay of pair (i, j) of a diagonal tile, j <= i
  template <class E>
  __device__ float decay(int i, int j) const {
    const float2 x = sums[i], y = sums[j];
    const float log = at_most((x.x - y.x) + (x.y - y.y), 0);
    return sizeof(E) == 2 ? exp2_fast(log) : exp2f(log);
  }
  __device__ static int level(int i, int j) { return 32 - __clz(i ^ j); }
};

// Decay over the tiles between J and I > J
__device__ inline float decay_between(const Arguments& a, int64_t head, int I, int J) {
  const double* const starts = a.w.starts + head * (a.z.tiles + 1);
  return exp2f(static_cast<float>(starts[I] - starts[J + 1]));
}

// Starts copying rows to a tile of 64 x Columns; asynchronous if rows are aligned to 16 bytes. Elements outside
// rows x width become zero.
template <int Columns, class E>
__device__ inline void copy_rows(E* tile, HeadRows<const E> from, int first, int rows, int width, const Place& at) {
  constexpr int part = 16 / sizeof(E), parts = Columns / part, ld = leading<E>(Columns);
  from.data += first;
  width = min(width - first, Columns);
  if (from.stride % part != 0 || reinterpret_cast<uintptr_t>(from.data) % 16 != 0) {
    load_tile<kTile, Columns, kThreads>(tile, ld, from, rows, width, at);
    return;
  }
#pragma unroll
  for (int i = at.thread; i < kTile * parts; i += kThreads) {
    const int r = i / parts, c = i % parts * part;
    const int bytes = r < rows ? max(0, min(16, (width - c) * static_cast<int>(sizeof(E)))) : 0;
    copy_async(tile + r * ld + c, bytes > 0 ? from.data + r * from.stride + c : from.data, bytes);
  }
}

// Columns of a slice of `width` columns: fewest columns of padding, then fewest slices. Float tiles are twice as large.
inline int slice_of(int width, Precision precision) {
  int best = 64;
  if (precision != Precision::bf16) return best;
  const auto whole = [&](int slice) { return (width + slice - 1) / slice * slice; };
  for (const int slice : {80, 96})
    if (whole(slice) <= whole(best)) best = slice;
  return best;
}

// out = A v; dv = A^T d_out, with the weighted pairs A; then dq = D k and dk = D^T q, with the gradients D of the
// scores
cudaError_t read_values(const Arguments& a, const Rows& out, Target to);
cudaError_t value_gradients(const Arguments& a, const LogLinearGradients& d, Target to);
cudaError_t query_and_key_gradients(const Arguments& a, const LogLinearGradients& d, Target to);
// Replaces the scores by their gradients, and writes the sums of rows and columns.
cudaError_t pair_gradients(const Arguments& a, const LogLinearGradients& d, Target to);

}  // namespace sb::cuda::log_linear
