#include <gtest/gtest.h>

#include "base/error.h"
#include "random/mersenne.h"
#include "vectors.h"

namespace sb {
namespace {

using nlohmann::json;

const json& vectors() {
  static const json file = test::read_golden("grammar/rng_vectors.json.gz");
  return file;
}

TEST(PythonRandom, SeedsFromIntegersOfAnySize) {
  ASSERT_GE(vectors()["py_random"].size(), 100U);
  for (const json& c : vectors()["py_random"]) {
    PythonRandom rng(test::u128(c["seed"]));
    for (const json& value : c["getrandbits32"]) EXPECT_EQ(rng.getrandbits(32), value.get<uint32_t>());
  }
}

TEST(PythonRandom, RegeneratesBlockLikeMersenneTwister) {
  const json& c = vectors()["py_random_long"];
  PythonRandom rng(c["seed"].get<uint64_t>());
  std::vector<uint32_t> outputs(1255);
  for (uint32_t& o : outputs) o = rng.getrandbits(32);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(outputs[620 + i], c["outputs_620_to_630"][i].get<uint32_t>());
    EXPECT_EQ(outputs[1245 + i], c["outputs_1245_to_1255"][i].get<uint32_t>());
  }
}

TEST(PythonRandom, UsesTopBits) {
  const json& c = vectors()["py_getrandbits"];
  PythonRandom rng(c["seed"].get<uint64_t>());
  for (const json& pair : c["k_value"]) EXPECT_EQ(rng.getrandbits(pair[0].get<int>()), pair[1].get<uint32_t>());
}

TEST(PythonRandom, SamplesLikePythonOnBothPaths) {
  for (const json& c : vectors()["py_sample"]) {
    PythonRandom rng(c["seed"].get<uint64_t>());
    for (const char* which : {"first", "second"}) {
      EXPECT_EQ(json(rng.sample(c["n"].get<uint32_t>(), c["k"].get<uint32_t>())), c[which]);
    }
    EXPECT_EQ(rng.getrandbits(32), c["next32"].get<uint32_t>());
  }
}

TEST(PythonRandom, SamplesFromMoreThan52LikePython) {
  const json file = test::read_golden("random/numpy_extra.json.gz");
  ASSERT_EQ(file["py_sample"].size(), 9U);
  for (const json& c : file["py_sample"]) {
    SCOPED_TRACE(c["n"].dump() + " sample " + c["k"].dump());
    PythonRandom rng(c["seed"].get<uint64_t>());
    const auto sample = rng.sample(c["n"].get<uint32_t>(), c["k"].get<uint32_t>());
    EXPECT_EQ(json(test::head(sample, 20)), c["first"]);
    EXPECT_EQ(test::weighted_sum(sample), c["sum_weighted"].get<std::string>());
    EXPECT_EQ(rng.getrandbits(32), c["next32"].get<uint32_t>());
  }
}

TEST(PythonRandom, RejectsSamplingTooMany) {
  EXPECT_THROW(PythonRandom(1).sample(3, 4), Error);
}

}  // namespace
}  // namespace sb
