#include "random/pcg64.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/error.h"

namespace sb {
namespace {

// numpy shuffles the tail of the whole population above these sizes and uses Floyd's method below.
constexpr uint32_t kTailShufflePopulation = 10000;
constexpr uint32_t kTailShuffleShare = 50;

}  // namespace

Pcg64::Pcg64(const SeedSequence& seed) {
  const auto q = seed.generate_state();
  increment_ = (uint128{q[2]} << 64 | q[3]) << 1 | 1;
  step();
  state_ += uint128{q[0]} << 64 | q[1];
  step();
}

uint64_t Pcg64::bounded(uint64_t max) {
  if (max == 0) return 0;
  if (max == UINT64_MAX) return next64();
  if (max == UINT32_MAX) return next32();
  if (max < UINT32_MAX) {
    const uint32_t count = static_cast<uint32_t>(max) + 1;
    uint64_t product = uint64_t{next32()} * count;
    if (static_cast<uint32_t>(product) < count) {
      const uint32_t threshold = (UINT32_MAX - static_cast<uint32_t>(max)) % count;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next32()} * count;
    }
    return product >> 32;
  }
  const uint64_t count = max + 1;
  uint128 product = uint128{next64()} * count;
  if (low64(product) < count) {
    const uint64_t threshold = (UINT64_MAX - max) % count;
    while (low64(product) < threshold) product = uint128{next64()} * count;
  }
  return high64(product);
}

std::vector<uint32_t> Pcg64::choice(uint32_t n, uint32_t k) {
  if (k > n) {
    throw bad_input("random.choice", "sample larger than the population, expected at most " + std::to_string(n) +
                                         ", got " + std::to_string(k));
  }
  std::vector<uint32_t> chosen;
  if (n > kTailShufflePopulation && k > n / kTailShuffleShare) {
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0U);
    for (uint32_t i = n - 1; i >= std::max(n - k, 1U); --i) std::swap(order[i], order[bounded(i)]);
    return {order.end() - k, order.end()};
  }
  chosen.reserve(k);
  std::unordered_set<uint32_t> taken;
  for (uint32_t j = n - k; j < n; ++j) {
    const auto draw = static_cast<uint32_t>(bounded(j));
    chosen.push_back(taken.insert(draw).second ? draw : j);
    taken.insert(chosen.back());
  }
  for (uint32_t i = k; i-- > 1;) std::swap(chosen[i], chosen[bounded(i)]);
  return chosen;
}

}  // namespace sb
