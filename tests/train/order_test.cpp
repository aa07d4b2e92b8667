#include "random/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../base/temporary_folder.h"
#include "small_run.h"

namespace sb {
namespace {

using test::small_config;
using test::TemporaryFolder;
using test::work;

TEST(SampleOrder, IsAPermutationInEveryPass) {
  for (const uint64_t count : {1, 2, 3, 4, 5, 16, 17, 48, 1000, 4097}) {
    for (const uint64_t seed : {1, 2}) {
      for (const uint64_t pass : {0, 1, 5}) {
        const SampleOrder order{seed, count};
        std::set<uint64_t> seen;
        for (uint64_t i = 0; i < count; ++i) seen.insert(order.at(pass * count + i));
        EXPECT_EQ(seen.size(), count) << seed << " " << pass;
        EXPECT_LT(*seen.rbegin(), count) << seed << " " << pass;
      }
    }
  }
}

TEST(SampleOrder, IsIndexWithoutSeed) {
  for (const uint64_t i : {0, 1, 47, 48, 1000}) EXPECT_EQ((SampleOrder{0, 48}.at(i)), i);
}

// Values from an independent implementation of docs/benchmark.md.
TEST(SampleOrder, MatchesDocumentedOrder) {
  const SampleOrder order{7, 200'000};
  const uint64_t places[] = {156767, 97926, 103844, 160759};
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(order.at(i), places[i]);
  EXPECT_EQ(order.at(200'000), 84522U);  // the second pass
  EXPECT_EQ((SampleOrder{(uint64_t{5} << 32) + 1, 10}.at(0)), 8U);
}

TEST(SampleOrder, DiffersBetweenSeedsAndPasses) {
  const uint64_t count = 10'000;
  const auto same = [&](const SampleOrder& a, uint64_t pass_a, const SampleOrder& b, uint64_t pass_b) {
    int out = 0;
    for (uint64_t i = 0; i < count; ++i) out += a.at(pass_a * count + i) == b.at(pass_b * count + i);
    return out;
  };
  const SampleOrder one{1, count}, two{2, count}, high{(uint64_t{1} << 32) + 1, count}, index{0, count};
  EXPECT_LT(same(one, 0, two, 0), 10);  // one on average
  EXPECT_LT(same(one, 0, high, 0), 10);
  EXPECT_LT(same(one, 0, one, 1), 10);
  EXPECT_LT(same(one, 0, index, 0), 10);
}

TEST(OrderSeed, PermutesSamplesOfIndexOrder) {
  std::vector<uint64_t> seen;
  for (int64_t u = 0; u < 12; ++u)
    for (const uint64_t i : samples_of_update({9, 48}, 4, u)) seen.push_back(i);
  EXPECT_FALSE(std::is_sorted(seen.begin(), seen.end()));
  std::sort(seen.begin(), seen.end());
  for (uint64_t i = 0; i < 48; ++i) EXPECT_EQ(seen[i], i);
  EXPECT_EQ(samples_of_update({}, 4, 3), (std::vector<uint64_t>{12, 13, 14, 15}));
}

TEST(OrderSeed, ChangesRunIdAndMetricsButNotCeiling) {
  const ResolvedConfig index = small_config(), explicit_index = small_config({"train.order_seed=0"}),
                       other = small_config({"train.order_seed=9"});
  EXPECT_EQ(index.run_id, explicit_index.run_id);
  EXPECT_NE(index.run_id, other.run_id);
  const TemporaryFolder root;
  ASSERT_EQ(work(index, root.path()), RunStatus::done);
  ASSERT_EQ(work(other, root.path()), RunStatus::done);
  EXPECT_NE(test::content(root.path(), index, "metrics.jsonl"), test::content(root.path(), other, "metrics.jsonl"));
  const Result a = load_result(root.path() + "/" + index.run_id), b = load_result(root.path() + "/" + other.run_id);
  EXPECT_FALSE(a.config.contains("train.order_seed"));
  EXPECT_EQ(b.config.at("train.order_seed"), "9");
  EXPECT_EQ(a.test->ceiling->accuracy, b.test->ceiling->accuracy);
}

TEST(OrderSeed, StoppedRunResumesToSameBytes) {
  const ResolvedConfig config = small_config({"train.order_seed=4", "train.accumulate=2"});
  const TemporaryFolder clean, broken;
  ASSERT_EQ(work(config, clean.path()), RunStatus::done);
  int stops = 0;
  for (;; ++stops) {
    ASSERT_LT(stops, 100);
    TrainHooks hooks;
    int left = 3 + stops;
    hooks.stop = [&left] { return --left < 0; };
    if (work(config, broken.path(), hooks) != RunStatus::stopped) break;
  }
  EXPECT_GT(stops, 2);
  EXPECT_EQ(test::lasting_bytes(clean.path(), config), test::lasting_bytes(broken.path(), config));
}

}  // namespace
}  // namespace sb
