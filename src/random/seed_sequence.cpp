#include "random/seed_sequence.h"

namespace sb {
namespace {

constexpr uint32_t kInitA = 0x43b0d7e5, kMultA = 0x931e8875;
constexpr uint32_t kInitB = 0x8b51f9dd, kMultB = 0x58f38ded;
constexpr uint32_t kMixLeft = 0xca01f9dd, kMixRight = 0x4973f715;

// The running multiplier advances with every word hashed.
class Hash {
 public:
  Hash(uint32_t init, uint32_t mult) : running_(init), mult_(mult) {}
  uint32_t operator()(uint32_t value) {
    value ^= running_;
    running_ *= mult_;
    value *= running_;
    return value ^ value >> 16;
  }

 private:
  uint32_t running_, mult_;
};

uint32_t mix(uint32_t x, uint32_t y) {
  const uint32_t r = kMixLeft * x - kMixRight * y;
  return r ^ r >> 16;
}

}  // namespace

void append_words(std::vector<uint32_t>& words, uint128 value) {
  do {
    words.push_back(static_cast<uint32_t>(value));
    value >>= 32;
  } while (value != 0);
}

SeedSequence::SeedSequence(std::span<const uint32_t> words) {
  mix_entropy(words);
}

SeedSequence::SeedSequence(uint128 seed) {
  std::vector<uint32_t> words;
  append_words(words, seed);
  mix_entropy(words);
}

SeedSequence::SeedSequence(std::initializer_list<uint128> seeds) {
  std::vector<uint32_t> words;
  for (const uint128 seed : seeds) append_words(words, seed);
  mix_entropy(words);
}

void SeedSequence::mix_entropy(std::span<const uint32_t> words) {
  Hash hash(kInitA, kMultA);
  for (size_t i = 0; i < 4; ++i) pool_[i] = hash(i < words.size() ? words[i] : 0);
  for (size_t src = 0; src < 4; ++src) {
    for (size_t dst = 0; dst < 4; ++dst) {
      if (src != dst) pool_[dst] = mix(pool_[dst], hash(pool_[src]));
    }
  }
  for (size_t i = 4; i < words.size(); ++i) {
    for (uint32_t& p : pool_) p = mix(p, hash(words[i]));
  }
}

std::array<uint64_t, 4> SeedSequence::generate_state() const {
  Hash hash(kInitB, kMultB);
  std::array<uint64_t, 4> out{};
  for (size_t k = 0; k < 8; ++k) out[k / 2] |= uint64_t{hash(pool_[k % 4])} << (32 * (k % 2));
  return out;
}

}  // namespace sb
