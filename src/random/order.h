// The order in which training visits a finite set of samples: a permutation of 0 .. count-1 for each pass. Each
// position is computed directly, so nothing is stored and a run can resume anywhere.
#pragma once
#include <bit>
#include <cstdint>

#include "random/philox.h"

namespace sb {

// A Feistel network of eight rounds over the smallest even number of bits that holds count - 1. A value outside the set
// is permuted again until it falls inside. Round r maps the halves (a, b) of h bits to (b, a ^ w mod 2^h). Here w is
// the first word of
//   key {seed bits 0..31, 32..63}, counter {b, pass bits 0..31, 32..63, r << 8 | Purpose::order}
struct SampleOrder {
  uint64_t seed = 0;   // 0: in index order
  uint64_t count = 0;  // samples of the set, below 2^62

  // The sample at this position of all passes together; a pass has `count` positions.
  constexpr uint64_t at(uint64_t position) const {
    if (seed == 0 || count == 0) return position;
    const uint64_t pass = position / count;
    uint64_t place = position % count;
    do place = permuted(place, pass);
    while (place >= count);
    return place;
  }

 private:
  constexpr uint64_t permuted(uint64_t place, uint64_t pass) const {
    const int bits = count > 2 ? (static_cast<int>(std::bit_width(count - 1)) + 1) / 2 : 1;  // of each half
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    uint64_t a = place >> bits, b = place & mask;
    for (uint32_t round = 0; round < 8; ++round) {
      const PhiloxBlock words =
          philox4x32({static_cast<uint32_t>(b), static_cast<uint32_t>(pass), static_cast<uint32_t>(pass >> 32),
                      round << 8 | static_cast<uint32_t>(Purpose::order)},
                     {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
      const uint64_t next = a ^ (words[0] & mask);
      a = b;
      b = next;
    }
    return a << bits | b;
  }
};

}  // namespace sb
