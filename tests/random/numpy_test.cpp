#include <gtest/gtest.h>

#include "base/error.h"
#include "base/sha256.h"
#include "random/mersenne.h"
#include "random/pcg64.h"
#include "vectors.h"

namespace sb {
namespace {

using nlohmann::json;
using test::u128;
using test::u64;

const json& vectors() {
  static const json file = test::read_golden("grammar/rng_vectors.json.gz");
  return file;
}
const json& extra() {
  static const json file = test::read_golden("random/numpy_extra.json.gz");
  return file;
}

std::vector<uint32_t> list(const json& values) {
  return values.get<std::vector<uint32_t>>();
}

TEST(SeedSequence, MatchesNumpyForIntegersOfAnySize) {
  ASSERT_GE(vectors()["seed_to_pcg64"].size(), 20U);
  for (const json& c : vectors()["seed_to_pcg64"]) {
    const auto words = test::decimal_words(c["seed"]);
    const SeedSequence sequence{std::span<const uint32_t>(words)};
    SCOPED_TRACE(c["seed"].get<std::string>());
    EXPECT_EQ(json(sequence.pool()), c["pool"]);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(sequence.generate_state()[i], u64(c["generate_state_u64x4"][i]));
    Pcg64 rng(sequence);
    EXPECT_TRUE(rng.state() == u128(c["state"]));
    EXPECT_TRUE(rng.increment() == u128(c["inc"]));
    if (words.size() <= 4) {
      EXPECT_TRUE(Pcg64(u128(c["seed"])).state() == rng.state());
    }
    for (const json& raw : c["raw_u64"]) EXPECT_EQ(rng.next64(), u64(raw));
  }
}

TEST(SeedSequence, ConcatenatesTheWordsOfAList) {
  for (const json& c : extra()["lists"]) {
    std::vector<uint32_t> words;
    for (const json& seed : c["seeds"]) append_words(words, u128(seed));
    Pcg64 rng{SeedSequence{std::span<const uint32_t>(words)}};
    SCOPED_TRACE(c["seeds"].dump());
    EXPECT_TRUE(rng.state() == u128(c["state"]));
    EXPECT_TRUE(rng.increment() == u128(c["inc"]));
    if (c["seeds"].size() == 3) {
      const auto& s = c["seeds"];
      EXPECT_TRUE(Pcg64({u128(s[0]), u128(s[1]), u128(s[2])}).state() == rng.state());
    }
    for (const json& raw : c["raw_u64"]) EXPECT_EQ(rng.next64(), u64(raw));
  }
}

TEST(SeedSequence, MatchesNumpyForProductsPast64Bits) {
  for (const json& c : extra()["products"]) {
    const Pcg64 rng(u128(c["seed"]) * u128(c["index"]));
    EXPECT_TRUE(rng.state() == u128(c["state"]));
    EXPECT_TRUE(rng.increment() == u128(c["inc"]));
  }
}

TEST(Pcg64, MatchesNumpyDoubles) {
  for (const json& c : vectors()["random_double"]) {
    Pcg64 rng(c["seed"].get<uint64_t>());
    for (const json& hex : c["hex"]) EXPECT_EQ(rng.random(), test::from_hex(hex));
  }
}

TEST(Pcg64, KeepsBufferedHalfAcrossDoubles) {
  for (const json& c : vectors()["interleave"]) {
    Pcg64 rng(c["seed"].get<uint64_t>());
    for (const json& op : c["ops"]) {
      if (op[0] == "random") {
        EXPECT_EQ(rng.random(), test::from_hex(op[1]));
      } else {
        EXPECT_EQ(rng.bounded(op[1].get<uint64_t>() - 1), op[2].get<uint64_t>());
      }
    }
    EXPECT_EQ(rng.next64(), u64(c["next_raw"]));
  }
}

TEST(Pcg64, BoundedIntegersRedrawLikeNumpy) {
  const json& c = vectors()["lemire_redraw"];
  Pcg64 rng(c["seed"].get<uint64_t>());
  for (const json& value : c["values"]) EXPECT_EQ(rng.bounded(c["n"].get<uint64_t>() - 1), value.get<uint64_t>());
  EXPECT_EQ(rng.next64(), u64(c["next_raw"]));
}

TEST(Pcg64, BoundedIntegersPast32BitsUseFullDraws) {
  for (const json& k : extra()["integers"]) {
    Pcg64 rng(k["seed"].get<uint64_t>());
    SCOPED_TRACE(k["n"].get<std::string>());
    for (const json& value : k["values"]) EXPECT_EQ(rng.bounded(u64(k["n"]) - 1), u64(value));
    EXPECT_EQ(rng.next64(), u64(k["next_raw"]));
  }
  const json& full = extra()["integers_full"];
  Pcg64 rng(full["seed"].get<uint64_t>());
  for (const json& value : full["values"]) EXPECT_EQ(rng.bounded(UINT64_MAX), u64(value));
}

std::string digest(const std::vector<uint32_t>& values) {
  std::string text;
  for (const uint32_t v : values) text += (text.empty() ? "" : ",") + std::to_string(v);
  return sha256_hex(text);
}

TEST(Pcg64, ChoosesWithoutReplacementLikeNumpyOnBothPaths) {
  for (const json& c : vectors()["choice_noreplace"]) {
    const auto n = c["n"].get<uint32_t>();
    const auto k = c["k"].get<uint32_t>();
    SCOPED_TRACE(std::to_string(n) + " choose " + std::to_string(k));
    Pcg64 rng(c["seed"].get<uint64_t>());
    for (const char* which : {"first", "second"}) {
      const auto chosen = rng.choice(n, k);
      if (c.contains(which)) {
        EXPECT_EQ(chosen, list(c[which]));
      } else {
        EXPECT_EQ(digest(chosen), c["sha256_" + std::string(which)].get<std::string>());
      }
    }
    EXPECT_EQ(rng.has_half(), c["has_uint32"].get<int>() != 0);
    EXPECT_EQ(rng.half(), c["uinteger"].get<uint32_t>());
    EXPECT_EQ(rng.next64(), u64(c["next_raw"]));
  }
  for (const json& c : extra()["choice"]) {
    Pcg64 rng(c["seed"].get<uint64_t>());
    const auto chosen = rng.choice(c["n"].get<uint32_t>(), c["k"].get<uint32_t>());
    EXPECT_EQ(test::head(chosen, 20), list(c["first"]));
    EXPECT_EQ(test::weighted_sum(chosen), c["sum_weighted"].get<std::string>());
    EXPECT_EQ(rng.next64(), u64(c["next_raw"]));
  }
}

TEST(Pcg64, RejectsChoosingTooMany) {
  Pcg64 rng(uint128{1});
  EXPECT_THROW(rng.choice(3, 4), Error);
}

TEST(NumpyLegacy, MatchesNpRandomDoubles) {
  for (const json& c : extra()["legacy"]) {
    NumpyLegacy rng(c["seed"].get<uint32_t>());
    for (const json& hex : c["doubles"]) EXPECT_EQ(rng.random(), test::from_hex(hex));
  }
}

TEST(NumpyLegacy, DrawsIntervalsLikeNumpyShuffle) {
  for (const json& c : extra()["legacy_shuffle"]) {
    NumpyLegacy rng(c["seed"].get<uint32_t>());
    std::vector<uint32_t> order(c["n"].get<size_t>());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    for (auto i = static_cast<uint32_t>(order.size()); i-- > 1;) std::swap(order[i], order[rng.interval(i)]);
    EXPECT_EQ(test::head(order, 20), list(c["first"]));
    EXPECT_EQ(test::weighted_sum(order), c["order_sum_weighted"].get<std::string>());
    EXPECT_EQ(rng.random(), test::from_hex(c["next_double"]));
  }
  NumpyLegacy unmoved(7), other(7);
  EXPECT_EQ(unmoved.interval(0), 0U);
  EXPECT_EQ(unmoved.random(), other.random());
}

}  // namespace
}  // namespace sb
