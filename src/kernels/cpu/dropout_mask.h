// Computes dropout masks (kernels/dropout_stream.h) in rows of channels, with several generator blocks per vector.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/dropout_stream.h"
#include "random/philox_vectors.h"

namespace sb::cpu {

// Parameters of the mask of a tensor [B, frames, channels]; `samples` has B sample indices.
struct DropoutMask {
  uint64_t seed;
  uint32_t place, update;
  const int64_t* samples;
  int64_t frames, channels;
  double p;
};

// Computes masks of up to `most` rows (b, t) per call. Use one object per thread.
class DropoutRows {
 public:
  DropoutRows(const DropoutMask& mask, int64_t most)
      : mask_(mask), dropped_(dropped_halves(mask.p)), blocks_((mask.channels + 7) / 8) {
    const int64_t all = (std::min(most, mask.frames) * blocks_ + kBlocks - 1) / kBlocks * kBlocks;
    counters_.resize(static_cast<size_t>(all));
    for (int64_t i = 0; i < all; ++i)
      counters_[static_cast<size_t>(i)] = static_cast<uint32_t>(i / blocks_ << 12 | i % blocks_);
  }

  // Fills scale [last - first, channels] with 0 for dropped and kept_scale(p) for kept elements.
  template <class T>
  void fill(int64_t first, int64_t last, T* scale) const {
    for (int64_t row = first; row < last;) {
      const int64_t sample = row / mask_.frames, frame = row - sample * mask_.frames;
      const int64_t count = std::min(last - row, mask_.frames - frame);
      frames_of(static_cast<uint32_t>(mask_.samples[sample]), frame, count, scale + (row - first) * mask_.channels);
      row += count;
    }
  }

 private:
  static constexpr int kVectors = 4;
  static constexpr int kBlocks = kVectors * simd::kWordLanes;  // generator blocks computed together
  static constexpr int64_t kGroup = 8 * kBlocks;               // half words in these blocks

  // Blocks of consecutive frames share vectors, so narrow frames fill the vectors, too.
  template <class T>
  void frames_of(uint32_t sample, int64_t frame, int64_t count, T* scale) const {
    const T kept = static_cast<T>(kept_scale(mask_.p));
    const int64_t blocks = count * blocks_, tail = mask_.channels - 8 * (blocks_ - 1);  // channels of the last block
    T group[kGroup];
    for (int64_t at = 0; at < blocks; at += kBlocks) {
      uint16_t half[kGroup];
      halves(counters_.data() + at, static_cast<uint32_t>(frame << 12), sample, half);
      const bool whole = tail == 8 && at + kBlocks <= blocks;
      T* const to = whole ? scale + 8 * at : group;
      for (int64_t i = 0; i < kGroup; ++i) to[i] = half[i] >= dropped_ ? kept : T(0);
      if (whole) continue;
      for (int64_t i = at; i < std::min(at + kBlocks, blocks); ++i) {
        const int64_t row = i / blocks_, block = i - row * blocks_;
        std::copy_n(group + 8 * (i - at), block + 1 == blocks_ ? tail : 8, scale + row * mask_.channels + 8 * block);
      }
    }
  }

  // Computes the half words of the blocks whose first counter words are counter[i] + start.
  void halves(const uint32_t* counter, uint32_t start, uint32_t sample, uint16_t (&half)[kGroup]) const {
    static_assert(std::endian::native == std::endian::little);
    alignas(64) uint32_t word[4][kBlocks];
    simd::Words first[kVectors], c[4][kVectors];
    for (int v = 0; v < kVectors; ++v)
      first[v] = simd::Words::load_unaligned(counter + v * simd::kWordLanes) + simd::Words(start);
    simd::philox<kVectors>(first, sample, mask_.update, dropout_word(mask_.place), static_cast<uint32_t>(mask_.seed),
                           static_cast<uint32_t>(mask_.seed >> 32), c);
    for (int w = 0; w < 4; ++w)
      for (int v = 0; v < kVectors; ++v) c[w][v].store_aligned(word[w] + v * simd::kWordLanes);
    uint32_t in_order[4 * kBlocks];
    for (int b = 0; b < kBlocks; ++b)
      for (int w = 0; w < 4; ++w) in_order[4 * b + w] = word[w][b];
    std::memcpy(half, in_order, sizeof half);
  }

  DropoutMask mask_;
  uint16_t dropped_;
  int64_t blocks_;                  // per row
  std::vector<uint32_t> counters_;  // row << 12 | block, for the rows of a call that starts at frame 0
};

}  // namespace sb::cpu
