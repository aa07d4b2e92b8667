#pragma once
#include <cstdint>

#include "random/philox.h"

namespace sb {

// The words of a PhiloxStream, one after the other.
class WordStream {
 public:
  explicit WordStream(const PhiloxStream& stream) : stream_(stream) {}
  uint32_t next() {
    if (at_ % 4 == 0) block_ = stream_.block(at_ / 4);
    return block_[at_++ % 4];
  }
  int below(int bound) { return static_cast<int>(uint64_t{next()} * static_cast<uint64_t>(bound) >> 32); }
  // For bounds up to 2^32, from two words: every value is equally likely up to 2^-32.
  uint64_t below_large(uint64_t bound) {
    const uint64_t high = next(), low = next();
    return (high * bound + (low * bound >> 32)) >> 32;
  }

 private:
  PhiloxStream stream_;
  PhiloxBlock block_{};
  uint32_t at_ = 0;
};

}  // namespace sb
