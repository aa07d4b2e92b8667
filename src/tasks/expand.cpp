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

// scale * U(0,1) of words first .. first+count-1.
void fill_noise(uint64_t seed, Split split, uint64_t index, float scale, size_t first, size_t count, float* out) {
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  const auto low = static_cast<uint32_t>(index);
  const uint32_t high = static_cast<uint32_t>(index >> 32) ^ (static_cast<uint32_t>(split) << 24);
  constexpr size_t kChunk = size_t{4} * kLanes;
  const auto lanes = [&](size_t word, float* to) {
    philox_lanes(key, low, high, static_cast<uint32_t>(word / 4), scale, to);
  };
  float part[kChunk];
  size_t at = 0;
  if (const size_t inside = first % 4; inside != 0) {  // of a block
    lanes(first - inside, part);
    at = std::min(count, kChunk - inside);
    std::copy_n(part + inside, at, out);
  }
  for (; at + kChunk <= count; at += kChunk) lanes(first + at, out + at);
  if (at < count) {
    lanes(first + at, part);
    std::copy_n(part, count - at, out + at);
  }
}

}  // namespace

void expand_row(const Batch& batch, int row, int from, int to, float* out) {
  const auto channels = static_cast<size_t>(batch.channels);
  if (!batch.dense.empty()) {
    const size_t first = (static_cast<size_t>(row) * batch.frames + static_cast<size_t>(from)) * channels;
    std::copy_n(batch.dense.data() + first, static_cast<size_t>(to - from) * channels, out);
    return;
  }
  const int real = std::clamp(batch.real_frames(row), from, to);
  const size_t filled = batch.noise > 0 ? static_cast<size_t>(real - from) * channels : 0;
  if (filled > 0) {
    fill_noise(batch.seed, batch.split, batch.samples[static_cast<size_t>(row)], static_cast<float>(batch.noise),
               static_cast<size_t>(from) * channels, filled, out);
  }
  std::fill(out + filled, out + static_cast<size_t>(to - from) * channels, 0.0F);
  const int16_t* symbol = batch.symbol.data() + static_cast<size_t>(row) * batch.frames;
  for (int t = from; t < real; ++t) {
    if (symbol[t] >= 0) out[static_cast<size_t>(t - from) * channels + symbol[t]] += 1.0F;
  }
}

void expand_frames(const Batch& batch, float* out) {
  const size_t width = static_cast<size_t>(batch.frames) * batch.channels;
  for (int b = 0; b < batch.batch; ++b) expand_row(batch, b, 0, batch.frames, out + static_cast<size_t>(b) * width);
}

}  // namespace sb
