#include <algorithm>

#include "random/philox_vectors.h"
#include "tasks/batch.h"

namespace sb {
namespace {

constexpr int kLanes = simd::kWordLanes;  // blocks at once

// Words 4*block .. 4*(block + kLanes) - 1 of the stream.
void philox_lanes(std::array<uint32_t, 2> key, uint32_t low, uint32_t high, uint32_t block, float scale, float* out) {
  alignas(64) uint32_t lane[4][kLanes];
  for (uint32_t i = 0; i < kLanes; ++i) lane[0][i] = block + i;
  const simd::Words first[1] = {simd::Words::load_aligned(lane[0])};
  simd::Words word[4][1];
  simd::philox<1>(first, low, high, static_cast<uint32_t>(Purpose::noise), key[0], key[1], word);
  for (int w = 0; w < 4; ++w) word[w][0].store_aligned(lane[w]);
  for (int i = 0; i < kLanes; ++i) {
    for (int w = 0; w < 4; ++w) out[4 * i + w] = scale * unit_float(lane[w][i]);
  }
}

// scale * U(0,1) of words 0 .. count-1.
void fill_noise(uint64_t seed, Split split, uint64_t index, float scale, size_t count, float* out) {
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  const auto low = static_cast<uint32_t>(index);
  const uint32_t high = static_cast<uint32_t>(index >> 32) ^ (static_cast<uint32_t>(split) << 24);
  constexpr size_t kChunk = size_t{4} * kLanes;
  size_t at = 0;
  for (; at + kChunk <= count; at += kChunk) {
    philox_lanes(key, low, high, static_cast<uint32_t>(at / 4), scale, out + at);
  }
  if (at < count) {
    float rest[kChunk];
    philox_lanes(key, low, high, static_cast<uint32_t>(at / 4), scale, rest);
    std::copy_n(rest, count - at, out + at);
  }
}

}  // namespace

void expand_frames(const Batch& batch, int vocab, double noise, uint64_t seed, float* out) {
  const size_t width = static_cast<size_t>(batch.frames) * vocab;
  for (int b = 0; b < batch.batch; ++b) {
    float* row = out + static_cast<size_t>(b) * width;
    const int real = batch.real_frames(b);
    const size_t filled = noise > 0 ? static_cast<size_t>(real) * vocab : 0;
    if (noise > 0) {
      fill_noise(seed, batch.split, batch.first + static_cast<uint64_t>(b), static_cast<float>(noise), filled, row);
    }
    std::fill(row + filled, row + width, 0.0F);
    const int16_t* symbol = batch.symbol.data() + static_cast<size_t>(b) * batch.frames;
    for (int t = 0; t < real; ++t) {
      if (symbol[t] >= 0) row[static_cast<size_t>(t) * vocab + symbol[t]] += 1.0F;
    }
  }
}

}  // namespace sb
