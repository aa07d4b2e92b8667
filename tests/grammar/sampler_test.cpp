#include "grammar/sampler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../base/expect.h"
#include "automata.h"
#include "base/error.h"
#include "base/parallel.h"
#include "grammar/build.h"
#include "grammar/reach.h"
#include "grammar/reference_walk.h"

namespace sb {
namespace {

std::shared_ptr<const Automaton> small() {
  static const auto a = build_automaton({.vocab = 9, .ambiguities = 8, .depth = 12});
  return a;
}

TEST(UniformEdge, MatchesRunningSumsAtEveryBoundary) {
  for (uint32_t n = 2; n <= 200; ++n) {
    const double p = 1.0 / n;
    double sum = p;
    for (uint32_t i = 0; i < n; ++i, sum += p) {
      const auto boundary = static_cast<int64_t>(sum * 0x1p53);
      for (int64_t m = boundary - 300; m <= boundary + 300; ++m) {
        if (m < 0 || m >= int64_t{1} << 53) continue;
        const auto draw = static_cast<uint64_t>(m);
        uint32_t expected = 0;
        double running = p;
        for (; expected + 1 < n && running <= static_cast<double>(draw) * 0x1p-53; ++expected) running += p;
        ASSERT_EQ(uniform_edge(draw << 11 | 0x7ff, n), expected) << n << " " << draw;
      }
    }
  }
}

TEST(UniformEdge, ReturnsLastEdgeIfReferenceFindsNone) {
  // Six additions of 1/6 end below the largest draw.
  EXPECT_EQ(uniform_edge(UINT64_MAX, 6), 5U);
  EXPECT_EQ(uniform_edge(UINT64_MAX, 65536), 65535U);
  EXPECT_EQ(uniform_edge(0, 65536), 0U);
}

TEST(Sampler, GivesTheSameBytesForAnyThreadCountAndOrder) {
  for (const Stream stream : {Stream::reference, Stream::direct}) {
    const Sampler sampler(small(), {5, 70, stream});
    const SampleBlock one = sampler.block(Split::train, 3, 500, 1);
    EXPECT_EQ(one.count(), 500U);
    EXPECT_EQ(sampler.block(Split::train, 3, 500, 4).states, one.states);
    EXPECT_EQ(sampler.block(Split::train, 3, 500, 0).states, one.states);
    std::vector<uint16_t> single(70);
    for (const uint64_t i : {502U, 3U, 77U, 3U}) {
      sampler.sample(Split::train, i, single.data());
      EXPECT_TRUE(std::equal(single.begin(), single.end(), one.sample(i - 3)));
    }
  }
}

TEST(Sampler, DrawsTrainValidAndTestFromDifferentStreams) {
  for (const Stream stream : {Stream::reference, Stream::direct}) {
    const Sampler sampler(small(), {5, 70, stream});
    std::vector<std::vector<uint16_t>> blocks;
    for (const Split split : {Split::train, Split::valid, Split::test})
      blocks.push_back(sampler.block(split, 0, 50, 1).states);
    EXPECT_NE(blocks[0], blocks[1]);
    EXPECT_NE(blocks[1], blocks[2]);
    EXPECT_NE(blocks[0], blocks[2]);
    EXPECT_EQ(sampler.block(Split::reference, 0, 50, 1).states, blocks[0]) << "as published";
  }
}

TEST(Sampler, FollowsEdgesOnly) {
  for (const Stream stream : {Stream::reference, Stream::direct}) {
    const auto a = small();
    const SampleBlock block = Sampler(a, {5, 90, stream}).block(Split::valid, 0, 300, 1);
    for (size_t i = 0; i < block.count(); ++i) {
      const uint16_t* s = block.sample(i);
      for (int t = 0; t < 90; ++t) {
        if (t == 0 || s[t - 1] == a->end) {
          EXPECT_NE(std::find(a->start.begin(), a->start.end(), s[t]), a->start.end());
        } else {
          EXPECT_TRUE(
              std::binary_search(a->dst.begin() + a->row[s[t - 1]], a->dst.begin() + a->row[s[t - 1] + 1], s[t]));
        }
      }
    }
  }
}

TEST(Sampler, HandlesUnequalProbabilitiesLikeReference) {
  const auto a = test::make_automaton(2, {0}, {{0, 0, 0.2}, {0, 1, 0.7}, {0, 2, 0.1}, {1, 0, 0.5}, {1, 2, 0.5}});
  const SamplerConfig config{3, 40, Stream::reference};
  const Sampler sampler(a, config);
  std::vector<uint16_t> states(40), expected;
  for (uint64_t index = 0; index < 200; ++index) {
    sampler.sample(Split::train, index, states.data());
    Pcg64 rng(uint128{3} * index);
    expected.clear();
    while (expected.size() < 40) {
      std::vector<uint16_t> string{0};
      while (string.back() != 2 && string.size() <= 40) {
        const double u = rng.random();
        if (string.back() == 0) {
          string.push_back(u < 0.2 ? 0 : u < 0.2 + 0.7 ? 1 : 2);
        } else {
          string.push_back(u < 0.5 ? 0 : 2);
        }
      }
      if (string.size() <= 40) expected.insert(expected.end(), string.begin(), string.end());
    }
    expected.resize(40);
    ASSERT_EQ(states, expected) << index;
  }
}

TEST(Sampler, RejectsSeedZeroForTraining) {
  const Sampler sampler(small(), {0, 30, Stream::reference});
  EXPECT_TRUE(has(error_line([&] { sampler.block(Split::train, 0, 2, 1); }), "all training samples equal"));
  std::vector<uint16_t> a(30), b(30);
  EXPECT_TRUE(has(error_line([&] { sampler.sample(Split::train, 1, a.data()); }), "seed 0"));
  sampler.sample(Split::reference, 1, a.data());
  sampler.sample(Split::reference, 2, b.data());
  EXPECT_EQ(a, b);
  sampler.sample(Split::test, 1, a.data());
  sampler.sample(Split::test, 2, b.data());
  EXPECT_NE(a, b);
  EXPECT_NO_THROW(Sampler(small(), {0, 30, Stream::direct}).block(Split::train, 0, 2, 1));
}

TEST(Sampler, UsesExactSeedProductsPast64Bits) {
  const uint64_t seed = (uint64_t{1} << 63) + 1;
  std::vector<uint16_t> a(60), b(60);
  const Sampler sampler(small(), {seed, 60, Stream::reference});
  // Modulo 2^64 both products would be the same.
  sampler.sample(Split::train, 2, a.data());
  Sampler(small(), {2, 60, Stream::reference}).sample(Split::train, 1, b.data());
  EXPECT_NE(a, b);
  ReferenceWalk(*small(), 60)
      .run(
          2, 1, [&](uint64_t) { return Pcg64((uint128{1} << 64) + 2); }, b.data());
  EXPECT_EQ(a, b);
}

TEST(Sampler, NamesTooShortLength) {
  const auto chain = test::make_automaton(4, {0}, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 4, 1}});
  for (const Stream stream : {Stream::reference, Stream::direct}) {
    EXPECT_TRUE(has(error_line([&] { Sampler(chain, {1, 4, stream}); }), "no string of at most 4 elements"));
    EXPECT_NO_THROW(Sampler(chain, {1, 5, stream}));
    EXPECT_TRUE(has(error_line([&] { Sampler(chain, {1, 0, stream}); }), "[sample.length]"));
    EXPECT_TRUE(has(error_line([&] { Sampler(chain, {1, -7, stream}); }), "got -7"));
  }
}

TEST(Sampler, RejectsHopelessAcceptanceRateInReferenceStreamOnly) {
  const auto rare = test::coin(1 - 1e-6);
  EXPECT_TRUE(has(error_line([&] { Sampler(rare, {1, 5, Stream::reference}); }), "with probability 4e-06"));
  const SampleBlock block = Sampler(rare, {1, 5, Stream::direct}).block(Split::train, 0, 10, 1);
  EXPECT_EQ(block.count(), 10U);
}

TEST(Sampler, GivesUpAfterSameAttemptsAsReference) {
  const auto rare = test::coin(1 - 1e-4);
  const Sampler sampler(rare, {1, 2, Stream::reference});
  const std::string line = error_line([&] { sampler.block(Split::train, 0, 200, 2); }, Exit::check_failed);
  EXPECT_TRUE(has(line, "10001 attempts"));
}

TEST(Sampler, RejectsTooLargeTables) {
  EXPECT_TRUE(has(error_line([&] { Sampler(small(), {1, 10'000'000, Stream::direct}); }), "entries"));
}

TEST(Sampler, ReachIsProbabilityOfEndingInTime) {
  const Sampler sampler(test::coin(0.75), {1, 20, Stream::reference});
  for (int k = 0; k <= 20; ++k) {
    EXPECT_NEAR(sampler.ends_within(k, 0), 1 - std::pow(0.75, k), 1e-15);
    EXPECT_EQ(sampler.ends_within(k, 1), 1);
  }
  EXPECT_NEAR(fit_probability(*test::coin(0.75), 20), sampler.ends_within(19, 0), 1e-15);
}

TEST(Sampler, RejectsInvalidAutomaton) {
  auto broken = std::make_shared<Automaton>(*small());
  broken->dst[0] = 70000;
  EXPECT_TRUE(has(error_line([&] { Sampler(broken, {1, 30, Stream::reference}); }), "[automaton]"));
}

TEST(SamplerNames, RoundTripAndListValidNames) {
  for (const Split split : {Split::train, Split::valid, Split::test, Split::reference}) {
    EXPECT_EQ(parse_split(to_string(split)), split);
  }
  for (const Stream stream : {Stream::reference, Stream::direct}) EXPECT_EQ(parse_stream(to_string(stream)), stream);
  EXPECT_TRUE(has(error_line([] { parse_split("dev"); }), "train, valid, test, reference"));
  EXPECT_TRUE(has(error_line([] { parse_stream(""); }), "reference, direct"));
}

TEST(ParallelFor, CoversEveryIndexOnceAndPropagatesException) {
  std::vector<std::atomic<int>> seen(1001);
  parallel_for(seen.size(), 10, 7, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) ++seen[i];
  });
  for (const auto& count : seen) EXPECT_EQ(count, 1);
  EXPECT_THROW(parallel_for(100, 1, 3, [](size_t, size_t) { throw bad_input("here", "no"); }), Error);
  EXPECT_NO_THROW(parallel_for(0, 0, 3, [](size_t, size_t) { throw bad_input("here", "no"); }));
}

}  // namespace
}  // namespace sb
