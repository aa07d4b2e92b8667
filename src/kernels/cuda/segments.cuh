// Few long sequences would leave most of a GPU idle in a loop over chunks, whose blocks share out sequences, heads and
// columns only. They are divided into segments, and the loop runs twice. A first pass starts every segment from a zero
// state and finds what the segment adds to the state, and its transition (decays, or a matrix). A small kernel joins
// the segments: it carries the states over them. The usual pass then runs for all segments at once, each from its own
// state. The backward pass does the same with gradients of states.
#pragma once
#include <algorithm>

#include "kernels/cuda/elements.cuh"

namespace sb::cuda {

struct Segments {
  int count = 1;
  int chunks = 0;  // per segment; the last one may have fewer
  // The segments that a pass loops over: `walked` of them, from `first` on
  int walked = 1, first = 0;
  Segments some(int from, int number) const { return {count, chunks, number, from}; }
};

// Chunks [begin, end) of one segment of a (sequence, head) pair, for a block. The grid has pairs * walked blocks.
struct Walk {
  int pair, index, begin, end;  // index: of the segment among those of all pairs
  __device__ Walk(const Segments& s, int chunks) {
    pair = static_cast<int>(blockIdx.x) / s.walked;
    const int segment = s.first + static_cast<int>(blockIdx.x) - pair * s.walked;
    index = pair * s.count + segment;
    begin = segment * s.chunks;
    end = min(chunks, begin + s.chunks);
  }
};

// Chooses the number of segments, from sizes and the number of multiprocessors only. blocks, first_blocks: of the usual
// pass and of the first pass, per segment; share: time of a chunk in the first pass, in tenths of that in the usual
// one. Sequences below 2,048 steps are not divided, nor are those that would gain less than a quarter of the time.
// Whole numbers, so that every host finds the same.
inline Segments divide(int64_t time, int chunks, int64_t blocks, int64_t first_blocks, int share) {
  constexpr int64_t least_time = 2048, joint = 5;  // joint: time to carry a state over a segment, in tenths of a chunk
  constexpr int least_chunks = 8, most = 64;
  Segments best{1, chunks};
  if (time < least_time || blocks == 0) return best;
  const int64_t at_once = multiprocessors();
  const auto rounds = [&](int64_t number) { return (number + at_once - 1) / at_once; };
  int64_t least = 30 * rounds(blocks) * chunks;  // in fortieths of a chunk
  for (int s = 2; s <= most && chunks / s >= least_chunks; ++s) {
    const int each = (chunks + s - 1) / s;
    const int64_t cost = 4 * ((10 * rounds(blocks * s) + share * rounds(first_blocks * s)) * each + joint * s);
    if (cost < least) best = {(chunks + each - 1) / each, each}, least = cost;
  }
  return best.some(0, best.count);
}

}  // namespace sb::cuda
