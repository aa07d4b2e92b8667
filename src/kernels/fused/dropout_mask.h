// Which elements a dropout of rate p keeps: element e iff half word e of the run's stream >= p 2^16, the low half of a
// word first. The rate is p to the nearest 2^-16 and the scale of what is kept belongs to that rate, so that the mean
// is kept exactly. Never stored, always recomputed.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/cpu/philox_vectors.h"
#include "kernels/fused.h"
#include "random/philox.h"

namespace sb {

class DropoutMask {
 public:
  DropoutMask(const DropoutKey& key, double p)
      : key_(key), dropped_(static_cast<uint16_t>(std::clamp(std::round(p * 0x1p16), 0.0, 0x1p16 - 1))) {}

  double scale() const { return 0x1p16 / (0x1p16 - dropped_); }  // of what is kept

  // scale[i] = scale() or 0 for elements first .. first + n - 1.
  template <class T>
  void fill(int64_t first, int64_t n, T* scale) const {
    const T kept = static_cast<T>(this->scale());
    T group[kGroup];
    for (int64_t at = first / 8 * 8; at < first + n; at += kGroup) {
      uint16_t half[kGroup];
      halves(static_cast<uint32_t>(at / 8), half);
      const bool whole = at >= first && at + kGroup <= first + n;
      T* const to = whole ? scale + (at - first) : group;
      for (int64_t i = 0; i < kGroup; ++i) to[i] = half[i] >= dropped_ ? kept : T(0);
      if (whole) continue;
      const int64_t begin = std::max(at, first), end = std::min(at + kGroup, first + n);
      std::copy_n(group + (begin - at), end - begin, scale + (begin - first));
    }
  }

 private:
  static constexpr int kVectors = 4;
  static constexpr int kBlocks = kVectors * simd::kWordLanes;  // of the generator, side by side
  static constexpr int64_t kGroup = 8 * kBlocks;               // half words of these

  // Those of blocks first .. first + kBlocks - 1.
  void halves(uint32_t first, uint16_t (&half)[kGroup]) const {
    static_assert(std::endian::native == std::endian::little);
    alignas(64) uint32_t word[4][kBlocks];
    for (int b = 0; b < kBlocks; ++b) word[0][b] = first + static_cast<uint32_t>(b);
    simd::Words counter[kVectors], c[4][kVectors];
    for (int v = 0; v < kVectors; ++v) counter[v] = simd::Words::load_aligned(word[0] + v * simd::kWordLanes);
    simd::philox<kVectors>(counter, static_cast<uint32_t>(key_.index), static_cast<uint32_t>(key_.index >> 32),
                           static_cast<uint32_t>(Purpose::dropout), static_cast<uint32_t>(key_.seed),
                           static_cast<uint32_t>(key_.seed >> 32), c);
    for (int w = 0; w < 4; ++w)
      for (int v = 0; v < kVectors; ++v) c[w][v].store_aligned(word[w] + v * simd::kWordLanes);
    uint32_t in_order[4 * kBlocks];
    for (int b = 0; b < kBlocks; ++b)
      for (int w = 0; w < 4; ++w) in_order[4 * b + w] = word[w][b];
    std::memcpy(half, in_order, sizeof half);
  }

  DropoutKey key_;
  uint16_t dropped_;  // half words below
};

}  // namespace sb
