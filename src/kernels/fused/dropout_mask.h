// Which elements a dropout of rate 0 < p < 1 keeps: element e iff word e of the run's stream >= p 2^32. Never stored,
// always recomputed.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/fused.h"
#include "random/philox.h"

namespace sb {

class DropoutMask {
 public:
  DropoutMask(const DropoutKey& key, double p)
      : key_(key),
        stream_(key.seed, 0, key.index, Purpose::dropout),
        largest_dropped_(static_cast<uint32_t>(std::max(0.0, std::ceil(p * 0x1p32) - 1))) {}

  bool keeps(int64_t element) const { return stream_.word(static_cast<uint32_t>(element)) > largest_dropped_; }

  // scale[i] = kept or 0 for elements first .. first + n - 1. Inlined into a larger function its loops were seen to
  // lose their vectors.
  template <class T>
  __attribute__((noinline)) void fill(int64_t first, int64_t n, T kept, T* scale) const {
    T group[4 * kBlocks];
    for (int64_t at = first / 4 * 4; at < first + n; at += 4 * kBlocks) {
      uint32_t word[4][kBlocks];
      blocks(static_cast<uint32_t>(at / 4), word);
      const bool whole = at >= first && at + 4 * kBlocks <= first + n;
      T* to = whole ? scale + (at - first) : group;
      for (int b = 0; b < kBlocks; ++b)
        for (int w = 0; w < 4; ++w) to[4 * b + w] = word[w][b] > largest_dropped_ ? kept : T(0);
      if (whole) continue;
      const int64_t begin = std::max(at, first), end = std::min(at + 4 * kBlocks, first + n);
      std::copy_n(group + (begin - at), end - begin, scale + (begin - first));
    }
  }

 private:
  static constexpr int kBlocks = 16;

  // Philox blocks first .. first + kBlocks - 1 side by side, word by word.
  void blocks(uint32_t first, uint32_t (&word)[4][kBlocks]) const {
    uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
    uint32_t k0 = static_cast<uint32_t>(key_.seed), k1 = static_cast<uint32_t>(key_.seed >> 32);
    for (int b = 0; b < kBlocks; ++b) {
      c0[b] = first + static_cast<uint32_t>(b);
      c1[b] = static_cast<uint32_t>(key_.index);
      c2[b] = static_cast<uint32_t>(key_.index >> 32);
      c3[b] = static_cast<uint32_t>(Purpose::dropout);
    }
    for (int round = 0; round < 10; ++round) {
      for (int b = 0; b < kBlocks; ++b) {
        const uint64_t x = uint64_t{0xD2511F53} * c0[b], y = uint64_t{0xCD9E8D57} * c2[b];
        c0[b] = static_cast<uint32_t>(y >> 32) ^ c1[b] ^ k0;
        c1[b] = static_cast<uint32_t>(y);
        c2[b] = static_cast<uint32_t>(x >> 32) ^ c3[b] ^ k1;
        c3[b] = static_cast<uint32_t>(x);
      }
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    for (int b = 0; b < kBlocks; ++b) {
      word[0][b] = c0[b];
      word[1][b] = c1[b];
      word[2][b] = c2[b];
      word[3][b] = c3[b];
    }
  }

  DropoutKey key_;
  PhiloxStream stream_;
  uint32_t largest_dropped_;
};

}  // namespace sb
