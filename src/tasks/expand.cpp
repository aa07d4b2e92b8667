#include <algorithm>

#include "random/philox.h"
#include "tasks/batch.h"

namespace sb {
namespace {

constexpr int kLanes = 8;  // blocks at once

// Words 4*block .. 4*(block + kLanes) - 1 of the stream, the ten rounds of philox4x32 side by side.
void philox_lanes(std::array<uint32_t, 2> key, uint32_t low, uint32_t high, uint32_t block, float scale, float* out) {
  uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (uint32_t i = 0; i < kLanes; ++i) {
    c0[i] = block + i;
    c1[i] = low;
    c2[i] = high;
    c3[i] = static_cast<uint32_t>(Purpose::noise);
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t a = uint64_t{0xD2511F53} * c0[i];
      const uint64_t b = uint64_t{0xCD9E8D57} * c2[i];
      c0[i] = static_cast<uint32_t>(b >> 32) ^ c1[i] ^ key[0];
      c2[i] = static_cast<uint32_t>(a >> 32) ^ c3[i] ^ key[1];
      c1[i] = static_cast<uint32_t>(b);
      c3[i] = static_cast<uint32_t>(a);
    }
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  for (int i = 0; i < kLanes; ++i) {
    out[4 * i] = scale * unit_float(c0[i]);
    out[4 * i + 1] = scale * unit_float(c1[i]);
    out[4 * i + 2] = scale * unit_float(c2[i]);
    out[4 * i + 3] = scale * unit_float(c3[i]);
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
  const auto vocab = static_cast<size_t>(batch.vocab);
  const int real = std::clamp(batch.real_frames(row), from, to);
  const size_t filled = batch.noise > 0 ? static_cast<size_t>(real - from) * vocab : 0;
  if (filled > 0) {
    fill_noise(batch.seed, batch.split, batch.samples[static_cast<size_t>(row)], static_cast<float>(batch.noise),
               static_cast<size_t>(from) * vocab, filled, out);
  }
  std::fill(out + filled, out + static_cast<size_t>(to - from) * vocab, 0.0F);
  const int16_t* symbol = batch.symbol.data() + static_cast<size_t>(row) * batch.frames;
  for (int t = from; t < real; ++t) {
    if (symbol[t] >= 0) out[static_cast<size_t>(t - from) * vocab + symbol[t]] += 1.0F;
  }
}

void expand_frames(const Batch& batch, float* out) {
  const size_t width = static_cast<size_t>(batch.frames) * batch.vocab;
  for (int b = 0; b < batch.batch; ++b) expand_row(batch, b, 0, batch.frames, out + static_cast<size_t>(b) * width);
}

}  // namespace sb
