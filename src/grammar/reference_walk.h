// The reference's sampler: strings by rejection, with exactly the published draws.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "grammar/automaton.h"
#include "random/pcg64.h"

namespace sb {

constexpr int kMaxStringAttempts = 10001;  // limit of the reference for one string

// The edge, of n equally likely ones, that the reference takes: the number of running sums of 1/n (n left-to-right
// double additions) that are <= draw * 2^-53, at most n - 1. If the last sum is below 1 and the draw above it, the
// reference raises an IndexError (at most 8 draws of 2^53 for n <= 53); this function takes the last edge.
uint32_t uniform_edge_by_sums(uint64_t draw53, uint32_t n);

// The same edge without the sums. A sum lies within n/2 + 2 units of 2^-53 of (i + 1)/n, so the integer product decides
// unless the draw is that close to a multiple of 1/n.
inline uint32_t uniform_edge(uint64_t draw64, uint32_t n) {
  const uint64_t draw53 = draw64 >> 11;
  const uint128 product = uint128{draw53 << 11} * n;
  const uint64_t fraction = low64(product) >> 11;
  const uint64_t margin = uint64_t{n} * (uint64_t{n} + 4);
  if (fraction - margin > (uint64_t{1} << 53) - 2 * margin) [[unlikely]]
    return uniform_edge_by_sums(draw53, n);
  return static_cast<uint32_t>(high64(product));
}

struct WalkTrace {
  uint64_t attempts = 0;  // strings tried for the whole sample
  uint64_t next_raw = 0;  // the generator's next 64 bits after the sample
};

class ReferenceWalk {
 public:
  ReferenceWalk(const Automaton& automaton, int length);
  // Writes samples first..first+count-1 to out [count][length]; `stream(i)` is the generator of sample i. Several
  // samples advance in turn to hide memory latency, since each step of a sample depends on its previous table lookup.
  // `traces` [count] may be null.
  void run(uint64_t first, size_t count, const std::function<Pcg64(uint64_t)>& stream, uint16_t* out,
           WalkTrace* traces = nullptr) const;

 private:
  struct Row {
    uint32_t first;
    uint32_t degree;
  };
  struct Lane;
  void begin_string(Lane& lane) const;
  bool end_string(Lane& lane) const;
  uint32_t successor(Lane& lane, uint32_t state) const;

  int length_;
  uint32_t end_;
  std::vector<uint16_t> start_;
  std::vector<Row> rows_;
  std::vector<uint16_t> dst_;
  std::vector<double> sums_;  // running sums of each row, if some row is not uniform
  std::vector<uint8_t> uniform_;
  bool all_uniform_;
};

}  // namespace sb
