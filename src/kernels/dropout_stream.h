// Which elements a dropout of rate p keeps. Element (sample, frame, channel) is kept iff half word channel % 8, the low
// half of a word first, of the generator's block
//   key {seed}, counter {frame << 12 | channel / 8, sample, update, place << 8 | Purpose::dropout}
// is >= p 2^16. So a mask knows nothing of padding, nor of how a batch is cut. The rate is p to the nearest 2^-16 and
// the scale of what is kept belongs to that rate, so that the mean is kept exactly. Never stored, always recomputed.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "random/philox.h"

namespace sb {

inline constexpr int64_t kDropoutFrames = 1 << 20, kDropoutChannels = 1 << 15, kDropoutPlaces = 1 << 24;

// Half words below are dropped.
inline uint16_t dropped_halves(double p) {
  return static_cast<uint16_t>(std::clamp(std::round(p * 0x1p16), 0.0, 0x1p16 - 1));
}
// Of what is kept.
inline double kept_scale(double p) {
  return 0x1p16 / (0x1p16 - dropped_halves(p));
}
constexpr uint32_t dropout_word(uint32_t place) {
  return place << 8 | static_cast<uint32_t>(Purpose::dropout);
}

}  // namespace sb
