// Normal numbers of arrays have the bits of those that are drawn one by one.
#include "random/normal.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "base/portable_arrays.h"

namespace sb {
namespace {

uint64_t bits(double x) {
  return std::bit_cast<uint64_t>(x);
}

TEST(NormalPairs, HaveTheBitsOfSinglePairs) {
  for (const size_t pairs : {1, 2, 63, 64, 65, 1000}) {
    const PhiloxStream stream(3, 1, pairs, Purpose::signal);
    WordStream words(stream), same(stream);
    same.next();  // a pair may begin inside a block
    words.next();
    std::vector<double> drawn(2 * pairs + 1, 7.0);
    normal_pairs(words, pairs, drawn.data());
    for (size_t i = 0; i < pairs; ++i) {
      const uint32_t a = same.next(), b = same.next();
      const auto [u, v] = normal_pair(a, b);
      ASSERT_EQ(bits(drawn[2 * i]), bits(u)) << i << " of " << pairs;
      ASSERT_EQ(bits(drawn[2 * i + 1]), bits(v)) << i << " of " << pairs;
    }
    EXPECT_EQ(drawn.back(), 7.0);
    EXPECT_EQ(words.next(), same.next());
  }
}

// Samples of signals and tracking depend on these bits.
TEST(NormalPairs, HaveTheBitsOfEarlierVersions) {
  EXPECT_EQ(bits(portable::log(0x1p-33)), 0xc036dfb516f20bbfU);
  EXPECT_EQ(bits(portable::log(3)), 0x3ff193ea7aad030bU);
  EXPECT_EQ(bits(portable::log(1e9)), 0x4034b927f32bffb8U);
  const auto [u, v] = normal_pair(0x12345678, 7);
  EXPECT_EQ(bits(u), 0x40026513167d10cfU);
  EXPECT_EQ(bits(v), 0x3e59485f555e7a4bU);
}

TEST(PortableArrays, HaveTheBitsOfSingleNumbers) {
  std::vector<double> turns, positive = {0x1p-1022, 0x1p-33, 1, 0x1.fffffffffffffp+1023};
  for (const double quarter : {0.0, 0.25, 0.5, 0.75})
    for (const double more : {0.0, 0x1p-32, 0.125, 0.25 - 0x1p-32}) turns.push_back(quarter + more);
  for (double x = 1.4142135623730949; x <= 1.4142135623730954; x = std::nextafter(x, 2)) positive.push_back(x);
  for (double x = 1e-9; x < 1e9; x *= 1.7) positive.push_back(x);
  std::vector<double> cosines = turns, sines(turns.size()), logarithms = positive;
  portable::cos_sin_turns(cosines, sines.data());
  portable::log(logarithms);
  for (size_t i = 0; i < turns.size(); ++i) {
    const double u = turns[i];
    EXPECT_EQ(bits(cosines[i]), bits(portable::cos_turns(u))) << u;
    EXPECT_EQ(bits(sines[i]), bits(portable::cos_turns(u < 0.25 ? u + 0.75 : u - 0.25))) << u;
  }
  for (size_t i = 0; i < positive.size(); ++i)
    EXPECT_EQ(bits(logarithms[i]), bits(portable::log(positive[i]))) << positive[i];
}

}  // namespace
}  // namespace sb
