// Few long sequences would leave most of a GPU idle in a loop over chunks, whose blocks share out sequences, heads and
// columns only. They are divided into segments, and the loop runs twice. A first pass starts every segment from a zero
// state and finds what the segment adds to the state, and its transition (decays, or a matrix). A small kernel joins
// the segments: it carries the states over them. The usual pass then runs for all segments at once, each from its own
// state. The backward pass does the same with gradients of states.
#pragma once
#include <algorithm>
#include <initializer_list>

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

// A pass that loops over chunks
struct Loop {
  int64_t blocks;  // per segment
  int time;        // of a chunk, in tenths of one of the usual forward pass
  int two = 0;     // of two chunks, if two blocks share a multiprocessor; 0: they cannot
  // Of a chunk of every segment, if each multiprocessor runs `each` blocks
  int64_t all(int64_t each) const { return two ? each / 2 * two + each % 2 * time : each * time; }
};

// Chooses the number of segments, from sizes and the number of multiprocessors only. usual, first: the loops that run
// for all segments at once, and those of the first passes. Sequences below 2,048 steps are not divided, nor are those
// that would gain less than a quarter of the time. Whole numbers, so that every host finds the same.
inline Segments divide(int64_t time, int chunks, std::initializer_list<Loop> usual, std::initializer_list<Loop> first) {
  constexpr int64_t least_time = 2048, joint = 5;  // joint: time to carry a state over a segment, in tenths of a chunk
  constexpr int least_chunks = 8, most = 64;
  Segments best{1, chunks};
  if (time < least_time || usual.begin()->blocks == 0) return best;
  const int64_t at_once = multiprocessors();
  const auto sum = [&](std::initializer_list<Loop> loops, int segments) {
    int64_t out = 0;
    for (const Loop& loop : loops) out += loop.all((loop.blocks * segments + at_once - 1) / at_once);
    return out;
  };
  int64_t least = 3 * sum(usual, 1) * chunks;  // in fortieths of a chunk
  for (int s = 2; s <= most && chunks / s >= least_chunks; ++s) {
    const int each = (chunks + s - 1) / s;
    const int64_t cost = 4 * ((sum(usual, s) + sum(first, s)) * each + joint * s);
    if (cost < least) best = {(chunks + each - 1) / each, each}, least = cost;
  }
  return best.some(0, best.count);
}

}  // namespace sb::cuda
