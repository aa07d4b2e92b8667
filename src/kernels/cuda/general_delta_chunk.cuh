// Shared parts of the passes over all chunks of the generalised delta rule in parallel (formulas:
// general_delta_problem.cuh), built from the tiles of the attention kernels.
//
// Pairs within strips of 16 rows are computed by levels (decayed_attention_levels.cuh). At each level there are two
// tiles: the later rows of the first are q, the earlier k; the later rows of the second are e, the earlier w. With C
// the product of the first tile with the transposed second one, the first times itself gives P, the second times itself
// A, C below the diagonal Q and C above it E^T. If keys are written, the earlier rows of both tiles are k, so C below
// the diagonal is P and above it A^T.
#pragma once
#include "kernels/cuda/general_delta_groups.cuh"
#include "kernels/cuda/general_delta_problem.cuh"

namespace sb::cuda::attention {

// Place of a block in a pass over all chunks
struct ChunkPlace {
  int64_t index;  // of (pair, chunk)
  int b, h, begin, steps;
  __device__ ChunkPlace(const GeneralProblem& p, int64_t chunk_index) : index(chunk_index) {
    const int pair = static_cast<int>(index / p.chunks), chunk = static_cast<int>(index - int64_t{1} * pair * p.chunks);
    b = pair / p.heads;
    h = pair - b * p.heads;
    begin = chunk * kChunk;
    steps = min(kChunk, p.time - begin);
  }
};

// Tiles [64][C] of q, e, k and, with two sides, w (DecayedRows). With erase_first, row i of e's tile is the chunk's row
// i + 1.
template <class E, int C, int Sides>
struct OperandTiles {
  static constexpr int ld = leading<E>(C), size = kChunk * ld, count = 2 + Sides;
  E* data;
  __device__ E* of(int which) const { return data + which * size; }
  __device__ E* strip(int which, int strip, int column) const { return of(which) + strip * 16 * ld + column; }
  // Starts to copy the channels from `first` on
  __device__ void copy(const GeneralProblem& p, const ChunkPlace& c, int first, const Place& at) const {
    const int width = min(C, p.K - first), shift = p.in.erase_first ? 1 : 0;
    const auto copy_one = [&](int which, const ConstRows& rows, int shifted) {
      HeadRows<const E> from(rows, c.b, c.begin, c.h, p.K);
      const int present = c.steps - shifted;
      if (present > 0) from.data += shifted * from.stride;
      from.data += width > 0 ? first : 0;
      copy_tile<kChunk, C>(of(which), ld, from, present, width, at);
    };
    copy_one(rows_q, p.in.q, 0);
    copy_one(rows_e, p.in.erase, shift);
    copy_one(rows_k, p.in.k, 0);
    if constexpr (Sides == 2) copy_one(rows_w, p.in.write, 0);
  }
};

// Calls f<product, sides>.
template <class F>
cudaError_t by_precision(const GeneralProblem& p, F f) {
  const auto by_sides = [&]<Product P>() {
    return p.in.writes_keys ? f.template operator()<P, 1>() : f.template operator()<P, 2>();
  };
  if (p.in.precision == Precision::bf16) return by_sides.template operator()<Product::bf16>();
  if (p.in.precision == Precision::tf32) return by_sides.template operator()<Product::tf32>();
  return by_sides.template operator()<Product::fp32>();
}

}  // namespace sb::cuda::attention
