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
// pass and of the first pass, per segment; share: time of a chunk in the first pass, relative to the usual one.
// Sequences below 2,048 steps are not divided, nor are those whose blocks occupy most of the GPU.
inline Segments divide(int64_t time, int chunks, int64_t blocks, int64_t first_blocks, double share) {
  constexpr int64_t least_time = 2048;
  constexpr int least_chunks = 8, most = 64;
  constexpr double least_gain = 0.75;
  const Segments whole{1, chunks};
  if (time < least_time || blocks == 0) return whole;
  const int64_t at_once = multiprocessors();
  const auto rounds = [&](int64_t number) { return static_cast<double>((number + at_once - 1) / at_once); };
  Segments best = whole;
  double best_cost = least_gain * rounds(blocks) * chunks;
  for (int s = 2; s <= most && chunks / s >= least_chunks; ++s) {
    const int each = (chunks + s - 1) / s;
    const double cost = (rounds(blocks * s) + share * rounds(first_blocks * s)) * each;
    if (cost < best_cost) best = {(chunks + each - 1) / each, each}, best_cost = cost;
  }
  return best.some(0, best.count);
}

}  // namespace sb::cuda
