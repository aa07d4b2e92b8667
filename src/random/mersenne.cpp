#include "random/mersenne.h"

#include <bit>
#include <numeric>
#include <string>
#include <unordered_set>

#include "base/error.h"
#include "random/seed_sequence.h"

namespace sb {
namespace {

constexpr uint32_t kUpperBit = 0x80000000;

std::vector<uint32_t> words_of(uint128 value) {
  std::vector<uint32_t> words;
  append_words(words, value);
  return words;
}

}  // namespace

Mersenne::Mersenne(uint32_t seed) {
  words_[0] = seed;
  for (uint32_t i = 1; i < kWords; ++i) words_[i] = 1812433253U * (words_[i - 1] ^ words_[i - 1] >> 30) + i;
}

Mersenne::Mersenne(std::span<const uint32_t> key) : Mersenne(19650218U) {
  size_t i = 1;
  const auto advance = [&] {
    if (++i == kWords) {
      words_[0] = words_[kWords - 1];
      i = 1;
    }
  };
  for (size_t n = 0, j = 0; n < std::max(kWords, key.size()); ++n) {
    const uint32_t before = words_[i - 1];
    words_[i] = (words_[i] ^ (before ^ before >> 30) * 1664525U) + key[j] + static_cast<uint32_t>(j);
    advance();
    if (++j == key.size()) j = 0;
  }
  for (size_t n = 1; n < kWords; ++n) {
    const uint32_t before = words_[i - 1];
    words_[i] = (words_[i] ^ (before ^ before >> 30) * 1566083941U) - static_cast<uint32_t>(i);
    advance();
  }
  words_[0] = kUpperBit;
}

void Mersenne::regenerate() {
  constexpr size_t kShift = 397;
  for (size_t i = 0; i < kWords; ++i) {
    const uint32_t y = (words_[i] & kUpperBit) | (words_[(i + 1) % kWords] & ~kUpperBit);
    words_[i] = words_[(i + kShift) % kWords] ^ y >> 1 ^ ((y & 1) != 0 ? 0x9908b0dfU : 0U);
  }
  next_ = 0;
}

uint32_t Mersenne::next32() {
  if (next_ == kWords) regenerate();
  uint32_t y = words_[next_++];
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680U;
  y ^= y << 15 & 0xefc60000U;
  return y ^ y >> 18;
}

PythonRandom::PythonRandom(uint128 seed) : engine_(std::span<const uint32_t>(words_of(seed))) {}

uint32_t PythonRandom::getrandbits(int bits) {
  return engine_.next32() >> (32 - bits);
}

uint32_t PythonRandom::below(uint32_t n) {
  const int bits = std::bit_width(n);
  uint32_t draw = 0;
  do {
    draw = getrandbits(bits);
  } while (draw >= n);
  return draw;
}

std::vector<uint32_t> PythonRandom::sample(uint32_t n, uint32_t k) {
  if (k > n) {
    throw bad_input("random.sample", "sample larger than the population, expected at most " + std::to_string(n) +
                                         ", got " + std::to_string(k));
  }
  // CPython picks the method by memory: a pool up to the size of the set that would hold k entries.
  uint64_t set_size = 21;
  if (k > 5) {
    uint64_t power = 1;
    while (power < 3 * uint64_t{k}) power *= 4;
    set_size += power;
  }
  std::vector<uint32_t> result(k);
  if (n <= set_size) {
    std::vector<uint32_t> pool(n);
    std::iota(pool.begin(), pool.end(), 0U);
    for (uint32_t i = 0; i < k; ++i) {
      const uint32_t j = below(n - i);
      result[i] = pool[j];
      pool[j] = pool[n - i - 1];
    }
    return result;
  }
  std::unordered_set<uint32_t> taken;
  for (uint32_t& r : result) {
    do {
      r = below(n);
    } while (!taken.insert(r).second);
  }
  return result;
}

double NumpyLegacy::random() {
  const uint32_t a = engine_.next32() >> 5;
  const uint32_t b = engine_.next32() >> 6;
  return (a * 67108864.0 + b) / 9007199254740992.0;
}

uint32_t NumpyLegacy::interval(uint32_t max) {
  if (max == 0) return 0;
  const uint32_t mask = UINT32_MAX >> std::countl_zero(max);
  uint32_t draw = 0;
  do {
    draw = engine_.next32() & mask;
  } while (draw > max);
  return draw;
}

}  // namespace sb
