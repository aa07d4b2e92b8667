// Philox4x32-10: a counter-based generator. A draw is a pure function of (key, counter), equal on CPU and GPU.
#pragma once
#include <array>
#include <cstdint>

namespace sb {

using PhiloxBlock = std::array<uint32_t, 4>;
inline constexpr uint32_t kPhiloxFactor[2] = {0xD2511F53, 0xCD9E8D57}, kPhiloxKeyStep[2] = {0x9E3779B9, 0xBB67AE85};

constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{kPhiloxFactor[0]} * counter[0];
    const uint64_t b = uint64_t{kPhiloxFactor[1]} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kPhiloxKeyStep[0];
    key[1] += kPhiloxKeyStep[1];
  }
  return counter;
}

// What a stream is for. Values are part of the data format: never renumber, only append.
enum class Purpose : uint32_t {
  gap_length = 1,
  gap_place = 2,
  wrong_symbol = 3,
  noise = 4,
  dropout = 5,
  initialisation = 6,
  order = 7,
  symbol = 8,
  signal = 9,
  position = 10
};

// The stream of one (seed, split, index, purpose). `block(i)` gives draws 4i..4i+3 as 32-bit words.
//   key     = {seed bits 0..31, seed bits 32..63}
//   counter = {block number i, index bits 0..31, index bits 32..63 xor split << 24, purpose}
// Streams are disjoint for indices below 2^56 and splits below 256; each holds 2^32 blocks, of which word() reaches
// 2^30.
class PhiloxStream {
 public:
  constexpr PhiloxStream(uint64_t seed, uint32_t split, uint64_t index, Purpose purpose)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        low_(static_cast<uint32_t>(index)),
        high_(static_cast<uint32_t>(index >> 32) ^ (split << 24)),
        purpose_(static_cast<uint32_t>(purpose)) {}
  constexpr PhiloxBlock block(uint32_t i) const { return philox4x32({i, low_, high_, purpose_}, key_); }
  constexpr uint32_t word(uint32_t i) const { return block(i / 4)[i % 4]; }

 private:
  std::array<uint32_t, 2> key_;
  uint32_t low_, high_, purpose_;
};

// 24 random bits as a float in [0,1); exact, so that every device gives the same value.
constexpr float unit_float(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24F;
}
// 32 random bits as a double in [0,1).
constexpr double unit_double(uint32_t word) {
  return static_cast<double>(word) * 0x1p-32;
}

}  // namespace sb
