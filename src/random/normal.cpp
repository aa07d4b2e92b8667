#include "random/normal.h"

#include <algorithm>
#include <span>

#include "base/portable_arrays.h"

namespace sb {

void normal_pairs(WordStream& words, size_t pairs, double* out) {
  constexpr size_t kBlock = 64;
  double length[kBlock], turn[kBlock], sine[kBlock];
  for (size_t first = 0; first < pairs; first += kBlock) {
    const size_t count = std::min(kBlock, pairs - first);
    for (size_t i = 0; i < count; ++i) {
      length[i] = (static_cast<double>(words.next()) + 0.5) * 0x1p-32;
      turn[i] = unit_double(words.next());
    }
    portable::log({length, count});
    portable::cos_sin_turns({turn, count}, sine);
    for (size_t i = 0; i < count; ++i) {
      const double radius = std::sqrt(-2 * length[i]);
      out[2 * (first + i)] = radius * turn[i];
      out[2 * (first + i) + 1] = radius * sine[i];
    }
  }
}

}  // namespace sb
