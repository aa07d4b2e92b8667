// Definition of the dropout masks. A Philox block has eight 16-bit half words, the low half of each word first. Element
// (sample, frame, channel) is kept iff half word channel % 8 of the block with
//   key {seed}, counter {frame << 12 | channel / 8, sample, update, place << 8 | Purpose::dropout}
// is >= p 2^16. A mask therefore does not depend on padding or on how a batch is split. The rate p is rounded to a
// multiple of 2^-16; the scale of kept elements uses the rounded rate, which preserves the mean exactly. Masks are
// never stored, but recomputed.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "random/philox.h"

namespace sb {

inline constexpr int64_t kDropoutFrames = 1 << 20, kDropoutChannels = 1 << 15, kDropoutPlaces = 1 << 24;

// Elements whose half word is below this threshold are dropped.
inline uint16_t dropped_halves(double p) {
  return static_cast<uint16_t>(std::clamp(std::round(p * 0x1p16), 0.0, 0x1p16 - 1));
}
// Factor of the kept elements.
inline double kept_scale(double p) {
  return 0x1p16 / (0x1p16 - dropped_halves(p));
}
constexpr uint32_t dropout_word(uint32_t place) {
  return place << 8 | static_cast<uint32_t>(Purpose::dropout);
}

}  // namespace sb
