#include "tasks/task_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "../base/expect.h"
#include "base/error.h"
#include "base/portable.h"
#include "tasks/lognormal.h"

namespace sb {
namespace {

std::string refusal(const std::function<void(TaskConfig&)>& spoil) {
  TaskConfig task = paper_task(2);
  spoil(task);
  return error_line([&] { check(task); });
}

TEST(Task, PaperTasksAreValidAndAsPublished) {
  for (int number = 0; number <= 4; ++number) {
    const TaskConfig task = paper_task(number);
    EXPECT_NO_THROW(check(task));
    EXPECT_EQ(task.number, number);
    EXPECT_EQ(task.noise, number == 2 || number == 4 ? 0.2 : 0.0);
  }
  EXPECT_EQ(longest_gap(paper_task(0).train), 0);
  EXPECT_EQ(longest_gap(paper_task(1).test), 1);
  EXPECT_EQ(longest_gap(paper_task(2).train), 10);
  EXPECT_EQ(paper_task(3).test.start, 50);
  EXPECT_EQ(paper_task(3).train.content, GapContent::forbidden_symbol);
  EXPECT_EQ(paper_task(4).train.law, GapLaw::uniform);
  EXPECT_EQ(paper_task(4).test.law, GapLaw::constant);
  EXPECT_THROW(paper_task(5), Error);
  EXPECT_THROW(paper_task(-1), Error);
}

TEST(Task, RejectsParametersOutOfRangeByName) {
  EXPECT_EQ(refusal([](TaskConfig& t) { t.train.min = -1; }), "[task.gap] min, expected 0 to 100000, got -1");
  EXPECT_EQ(refusal([](TaskConfig& t) { t.train.max = 100001; }), "[task.gap] max, expected 0 to 100000, got 100001");
  EXPECT_EQ(refusal([](TaskConfig& t) { t.train.min = 12; }), "[task.gap] min (12) > max (10)");
  EXPECT_EQ(refusal([](TaskConfig& t) { t.test.probability = 1.5; }),
            "[task.test_gap] probability, expected 0.0 to 1.0, got 1.5");
  EXPECT_EQ(refusal([](TaskConfig& t) { t.test.start = -3; }),
            "[task.test_gap] start, expected 0 to 1000000000, got -3");
  EXPECT_EQ(refusal([](TaskConfig& t) { t.noise = std::nan(""); }), "[task] noise, expected 0.0 to 100.0, got nan");
  EXPECT_EQ(refusal([](TaskConfig& t) { t.number = 9; }), "[task] number, expected 0 to 4, got 9");
  const auto lognormal = [](double mu, double sigma) {
    return [=](TaskConfig& t) { t.train = {.law = GapLaw::lognormal, .min = 1, .max = 9, .mu = mu, .sigma = sigma}; };
  };
  EXPECT_EQ(refusal(lognormal(21, 1)), "[task.gap] mu, expected -20.0 to 20.0, got 21.0");
  EXPECT_EQ(refusal(lognormal(0, 0)), "[task.gap] sigma, expected 0.001 to 20.0, got 0.0");
  EXPECT_EQ(refusal(lognormal(1, 0.5)), "");
}

TEST(GapLaw, UniformGivesEndsHalfTheWeight) {
  const std::vector<double> law = gap_length_law({.law = GapLaw::uniform, .min = 1, .max = 10});
  ASSERT_EQ(law.size(), 11U);
  EXPECT_EQ(law[0], 0);
  EXPECT_DOUBLE_EQ(law[1], 1.0 / 18);
  EXPECT_DOUBLE_EQ(law[5], 1.0 / 9);
  EXPECT_DOUBLE_EQ(law[10], 1.0 / 18);
  EXPECT_EQ(gap_length_law({.law = GapLaw::uniform, .min = 3, .max = 3}).back(), 1);
}

TEST(GapLaw, LognormalIsRoundedAndClamped) {
  const GapConfig gap{.law = GapLaw::lognormal, .min = 2, .max = 40, .mu = 1.5, .sigma = 0.8};
  const std::vector<double> law = gap_length_law(gap);
  EXPECT_NEAR(std::accumulate(law.begin(), law.end(), 0.0), 1, 1e-15);
  const auto below = [&](double x) { return 0.5 * std::erfc(-(std::log(x) - gap.mu) / gap.sigma / std::sqrt(2.0)); };
  EXPECT_NEAR(law[2], below(2.5), 1e-9);
  EXPECT_NEAR(law[7], below(7.5) - below(6.5), 1e-9);
  EXPECT_NEAR(law[40], 1 - below(39.5), 1e-9);
}

TEST(GapLaw, PortableFunctionsMatchStandardLibrary) {
  for (double x = 1e-6; x < 1e6; x *= 1.37)
    EXPECT_NEAR(portable::log(x), std::log(x), 1e-14 * (1 + std::fabs(std::log(x))));
  for (double x = -300; x < 300; x += 0.73) EXPECT_NEAR(portable::exp(x) / std::exp(x), 1, 1e-12) << x;
  for (double x = -36; x < 36; x += 0.0917) {
    EXPECT_NEAR(portable_normal_cdf(x), 0.5 * std::erfc(-x / std::sqrt(2.0)), 1e-14) << x;
  }
  EXPECT_EQ(portable_normal_cdf(-1e9), 0);
  EXPECT_EQ(portable_normal_cdf(1e9), 1);
}

// Computed with 40-digit arithmetic; a machine that disagrees would draw other data.
TEST(GapLaw, LognormalThresholdsAreCorrectlyRounded) {
  const std::vector<uint64_t> thresholds =
      lognormal_thresholds({.law = GapLaw::lognormal, .min = 1, .max = 6, .mu = 1, .sigma = 0.75});
  EXPECT_EQ(thresholds, (std::vector<uint64_t>{919004770, 1956638437, 2714196282, 3217965587, 3548953223}));
}

}  // namespace
}  // namespace sb
