#include "random/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace sb {
namespace {

TEST(Philox, MatchesRandom123TestVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamLaysOutItsCounterAsDocumented) {
  const uint64_t seed = 0x0123456789abcdef;
  const uint64_t index = 0x00000002deadbeef;
  const PhiloxStream stream(seed, 3, index, Purpose::noise);
  EXPECT_EQ(stream.block(7), philox4x32({7, 0xdeadbeef, 0x2U ^ 3U << 24, 4}, {0x89abcdef, 0x01234567}));
  for (uint32_t word = 28; word < 32; ++word) EXPECT_EQ(stream.word(word), stream.block(7)[word - 28]);
}

TEST(Philox, StreamsOfDifferentSeedSplitIndexOrPurposeDiffer) {
  std::set<PhiloxBlock> blocks;
  for (const uint64_t seed : {0ULL, 1ULL, 1ULL << 32}) {
    for (const uint32_t split : {0U, 1U, 2U, 3U}) {
      for (const uint64_t index : {0ULL, 1ULL, 1ULL << 32}) {
        for (const auto purpose : {Purpose::gap_length, Purpose::noise, Purpose::dropout}) {
          for (const uint32_t i : {0U, 1U}) blocks.insert(PhiloxStream(seed, split, index, purpose).block(i));
        }
      }
    }
  }
  EXPECT_EQ(blocks.size(), 3U * 4 * 3 * 3 * 2);
}

TEST(Philox, UnitValuesStayBelowOne) {
  EXPECT_EQ(unit_float(0), 0.0F);
  EXPECT_LT(unit_float(UINT32_MAX), 1.0F);
  EXPECT_EQ(unit_float(UINT32_MAX), 1.0F - 0x1p-24F);
  EXPECT_LT(unit_double(UINT32_MAX), 1.0);
  EXPECT_EQ(unit_double(1U << 31), 0.5);
}

}  // namespace
}  // namespace sb
