#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/portable.h"
#include "random/word_stream.h"

namespace sb {

// Two independent standard normal numbers, with the same bits on every machine.
inline std::pair<double, double> normal_pair(uint32_t a, uint32_t b) {
  const double radius = std::sqrt(-2 * portable::log((static_cast<double>(a) + 0.5) * 0x1p-32));
  const double turn = unit_double(b);
  return {radius * portable::cos_turns(turn), radius * portable::cos_turns(turn < 0.25 ? turn + 0.75 : turn - 0.25)};
}

// normal_pair() of the next words, [pairs][2], twice as fast as one by one.
void normal_pairs(WordStream& words, size_t pairs, double* out);

}  // namespace sb
