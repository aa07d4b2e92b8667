// The cases and the table of `bench gpu --long`, without a GPU.
#include "cli/long_bench.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sb::cli {
namespace {

GpuBench measured() {
  GpuBench out;
  out.product_flops = 792e12;
  for (const GpuBenchCase& each : long_cases("mamba", 1296)) {
    GpuBenchRow row;
    row.of = each;
    row.tokens_per_second = each.time <= 1024 ? 300e3 : 120e3;
    row.ms = 1e3 * each.batch * each.time / row.tokens_per_second;
    row.mfu = 0.2258;
    out.rows.push_back(row);
  }
  return out;
}

TEST(LongBench, KeepsNumberOfTokensAcrossLengths) {
  const auto cases = long_cases("mamba", 1296);
  ASSERT_EQ(cases.size(), std::size(kLongTimes));
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases[i].time, kLongTimes[i]);
    EXPECT_LE(std::abs(cases[i].batch * cases[i].time - kLongTokens), cases[i].time / 2);
  }
  EXPECT_EQ(cases.front().batch, 82);
  EXPECT_EQ(cases.back().batch, 1);
}

TEST(LongBench, ComparesWithSameModelAtT1024) {
  GpuBench bench = measured();
  EXPECT_DOUBLE_EQ(*long_ratio(bench, bench.rows[1]), 1);
  EXPECT_DOUBLE_EQ(*long_ratio(bench, bench.rows[4]), 0.4);
  GpuBenchRow other = bench.rows[4];
  other.of.width = 256;
  EXPECT_FALSE(long_ratio(bench, other));
  bench.rows[1].failure = "the GPU's memory is full";
  EXPECT_FALSE(long_ratio(bench, bench.rows[4]));
}

TEST(LongBench, PrintsRowPerLengthAndFailuresBelow) {
  GpuBench bench = measured();
  bench.rows[3].failure = "the GPU's memory is full";
  const std::string text = long_text(bench);
  EXPECT_NE(text.find("792 TFLOP/s"), std::string::npos);
  for (const char* part : {"32,768", "120,000", "22.6 %", "0.40 x", "1.00 x"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  EXPECT_NE(text.find("mamba 1296, T = 16384: the GPU's memory is full\n"), std::string::npos);
  const Json json = long_json(bench);
  ASSERT_EQ(json["rows"].size(), 5);
  EXPECT_EQ(json["rows"][4]["ratio_to_1024"], 0.4);
  EXPECT_FALSE(json["rows"][3].contains("ms"));
}

}  // namespace
}  // namespace sb::cli
