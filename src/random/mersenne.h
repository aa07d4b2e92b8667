// MT19937 as used by CPython's `random` and numpy's legacy `np.random`.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "random/wide.h"

namespace sb {

class Mersenne {
 public:
  explicit Mersenne(uint32_t seed);                  // init_genrand
  explicit Mersenne(std::span<const uint32_t> key);  // init_by_array
  uint32_t next32();

 private:
  static constexpr size_t kWords = 624;
  void regenerate();
  std::array<uint32_t, kWords> words_{};
  size_t next_ = kWords;
};

// Python's `random` after random.seed(seed), with the draws that the reference uses.
class PythonRandom {
 public:
  explicit PythonRandom(uint128 seed);
  uint32_t getrandbits(int bits);                        // 1..32
  uint32_t below(uint32_t n);                            // _randbelow(n), n >= 1
  std::vector<uint32_t> sample(uint32_t n, uint32_t k);  // random.sample(range(n), k); k <= n

 private:
  Mersenne engine_;
};

// numpy's legacy generator after np.random.seed(seed), with the draws that the reference uses for gaps.
class NumpyLegacy {
 public:
  explicit NumpyLegacy(uint32_t seed) : engine_(seed) {}
  double random();                  // [0,1), 53 bits of two outputs
  uint32_t interval(uint32_t max);  // uniform on 0..max by masking

 private:
  Mersenne engine_;
};

}  // namespace sb
