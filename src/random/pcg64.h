// numpy's default bit generator (PCG XSL-RR 128/64) with the draws of numpy.random.Generator, bit for bit.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "random/seed_sequence.h"
#include "random/wide.h"

namespace sb {

class Pcg64 {
 public:
  explicit Pcg64(const SeedSequence& seed);
  explicit Pcg64(uint128 seed) : Pcg64(SeedSequence(seed)) {}                           // default_rng(seed)
  explicit Pcg64(std::initializer_list<uint128> seeds) : Pcg64(SeedSequence(seeds)) {}  // default_rng([…])

  uint64_t next64() {
    step();
    return std::rotr(high64(state_) ^ low64(state_), static_cast<int>(state_ >> 122));
  }
  // Returns the low half of a 64-bit draw, then its high half. 64-bit draws in between do not touch the buffered half.
  uint32_t next32() {
    if (has_half_) {
      has_half_ = false;
      return half_;
    }
    const uint64_t draw = next64();
    has_half_ = true;
    half_ = static_cast<uint32_t>(draw >> 32);
    return static_cast<uint32_t>(draw);
  }
  // For callers that split 64-bit draws themselves: keep_half() leaves the high half for next32(), used_half() marks it
  // as used.
  void keep_half(uint32_t half) {
    has_half_ = true;
    half_ = half;
  }
  void used_half(uint32_t half) {
    has_half_ = false;
    half_ = half;
  }
  double random() { return static_cast<double>(next64() >> 11) * 0x1p-53; }

  uint64_t bounded(uint64_t max);  // uniform on 0..max by Lemire's method: Generator.integers(max + 1)
  std::vector<uint32_t> choice(uint32_t n, uint32_t k);  // choice(n, k, replace=False); k <= n

  uint128 state() const { return state_; }
  uint128 increment() const { return increment_; }
  bool has_half() const { return has_half_; }
  uint32_t half() const { return half_; }  // the last buffered half, even after next32() returned it

 private:
  void step() { state_ = state_ * kMultiplier + increment_; }
  static constexpr uint128 kMultiplier = uint128{0x2360ed051fc65da4} << 64 | 0x4385df649fccf645;

  uint128 state_ = 0;
  uint128 increment_ = 0;
  bool has_half_ = false;
  uint32_t half_ = 0;
};

}  // namespace sb
