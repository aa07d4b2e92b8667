// numpy's SeedSequence: entropy of any length, hashed into a pool of four 32-bit words.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "random/wide.h"

namespace sb {

// A non-negative integer as 32-bit words, least significant first, without leading zeros; 0 is one zero word.
void append_words(std::vector<uint32_t>& words, uint128 value);

class SeedSequence {
 public:
  explicit SeedSequence(std::span<const uint32_t> words);
  explicit SeedSequence(uint128 seed);
  // SeedSequence([a, b, …]): the words of each integer, one after the other.
  explicit SeedSequence(std::initializer_list<uint128> seeds);

  const std::array<uint32_t, 4>& pool() const { return pool_; }
  std::array<uint64_t, 4> generate_state() const;  // generate_state(4, uint64)

 private:
  void mix_entropy(std::span<const uint32_t> words);
  std::array<uint32_t, 4> pool_{};
};

}  // namespace sb
