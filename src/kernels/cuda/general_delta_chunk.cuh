// Shared parts of the passes over all chunks of the generalised delta rule in parallel (formulas:
// general_delta_problem.cuh), built from the tiles of the attention kernels.
//
// Pairs within strips of 16 rows are computed by levels (decayed_attention_levels.cuh). At each level there are two
// tiles: the later rows of the first are q, the earlier k; the later rows of the second are e, the earlier w. With C
// the product of the first tile with the transposed second one, the first times itself gives P, the second times itself
// A, C below the diagonal Q and C above it E^T.
#pragma once
#include "kernels/cuda/decayed_attention_levels.cuh"
#include "kernels/cuda/general_delta_problem.cuh"

namespace sb::cuda::attention {

inline constexpr int kChannels = 2 * kGroup;  // channels at a time, half of them for each warp of a strip

// Place of a block in a pass over all chunks
struct ChunkPlace {
  int64_t index;  // of (pair, chunk)
  int b, h, begin, steps;
  __device__ explicit ChunkPlace(const GeneralProblem& p) : index(blockIdx.x) {
    const int pair = static_cast<int>(index / p.chunks), chunk = static_cast<int>(index - int64_t{1} * pair * p.chunks);
    b = pair / p.heads;
    h = pair - b * p.heads;
    begin = chunk * kChunk;
    steps = min(kChunk, p.time - begin);
  }
};

// Tiles [64][kChannels] of q, e, k, w (DecayedRows). With erase_first, row i of e's tile is the chunk's row i + 1.
template <class E>
struct OperandTiles {
  static constexpr int ld = leading<E>(kChannels), size = kChunk * ld;
  E* data;
  __device__ E* of(int which) const { return data + which * size; }
  __device__ E* strip(int which, int strip, int column) const { return of(which) + strip * 16 * ld + column; }
  // Starts to copy the channels from `first` on
  __device__ void copy(const GeneralProblem& p, const ChunkPlace& c, int first, const Place& at) const {
    const int width = min(kChannels, p.K - first), shift = p.in.erase_first ? 1 : 0;
    const auto copy_one = [&](int which, const ConstRows& rows, int shifted) {
      HeadRows<const E> from(rows, c.b, c.begin, c.h, p.K);
      const int present = c.steps - shifted;
      if (present > 0) from.data += shifted * from.stride;
      from.data += width > 0 ? first : 0;
      copy_tile<kChunk, kChannels>(of(which), ld, from, present, width, at);
    };
    copy_one(rows_q, p.in.q, 0);
    copy_one(rows_e, p.in.erase, shift);
    copy_one(rows_k, p.in.k, 0);
    copy_one(rows_w, p.in.write, 0);
  }
};

// Decays of the warp's 16 rows and channels
__device__ inline void read_decays(BlockDecays& d, const GeneralProblem& p, const ChunkPlace& c, int channel,
                                   const Place& at) {
  const float* g = p.in.g + c.b * p.in.g_batch + c.h * p.in.g_head + (c.begin + at.strip * 16) * p.in.g_time;
  d.read(g + channel * p.in.g_key, p.in.g_time, c.steps - at.strip * 16, p.in.g ? p.K - channel : 0, at, p.in.g_key);
}

// The first (q over k) or second (e over w) tile of a level, from the undecayed rows in shared memory
template <class E>
__device__ inline void level_tile(float (&tile)[8], const OperandTiles<E>& rows, int which, int column,
                                  const BlockDecays& d, int s, const Place& at) {
  const E *x = rows.strip(rows_q + which, at.strip, column), *y = rows.strip(rows_k + which, at.strip, column);
#pragma unroll
  for (int e = 0; e < 8; e += 2) {
    const bool later = BlockDecays::later(e, s, at);
    const float2 row = load_pair((later ? x : y) + Element8::row(e, at) * rows.ld + Element8::column(e, at));
    tile[e] = row.x * (later ? d.since[e] : d.until[e]);
    tile[e + 1] = row.y * (later ? d.since[e + 1] : d.until[e + 1]);
  }
}

// Decays the strip's rows in shared memory, since the strip's start or until its end
template <class E>
__device__ inline void decay_strip(const OperandTiles<E>& rows, int column, const BlockDecays& d, const Place& at) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float x[8];
    read_group(x, rows.strip(i, at.strip, column), rows.ld, at);
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] *= i < rows_k ? d.since[e] : d.until[e];
    write_group(x, rows.strip(i, at.strip, column), rows.ld, at);
  }
}

// Calls f<product>.
template <class F>
cudaError_t by_precision(const GeneralProblem& p, F f) {
  if (p.in.precision == Precision::bf16) return f.template operator()<Product::bf16>();
  if (p.in.precision == Precision::tf32) return f.template operator()<Product::tf32>();
  return f.template operator()<Product::fp32>();
}

}  // namespace sb::cuda::attention
