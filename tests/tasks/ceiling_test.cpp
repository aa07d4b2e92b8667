#include "tasks/ceiling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "kind_example.h"
#include "tasks/automata.h"
#include "tasks/gap_task.h"
#include "tasks/partly_asked.h"

namespace sb {
namespace {

Ceiling ceiling(std::shared_ptr<const Sampler> sampler, const TaskConfig& task, uint64_t samples, int threads = 0) {
  CeilingRequest request;
  request.samples = samples;
  request.threads = threads;
  return exact_ceiling(GapTask(std::move(sampler), task), request);
}

// A prototype printed these to four places. Its number of samples is not recorded; 1,000 (the size of the test set) is
// assumed for its share of the sampling error.
TEST(Ceiling, MatchesPrototypeAtPaperScaleWithinSamplingError) {
  const double task1[] = {0.9951, 1.0000, 0.9941, 1.0000};
  const double task3[] = {0.9944, 0.9997, 0.9937, 0.9998};
  const auto expect_agreement = [](const Ceiling& c, double printed) {
    const double prototype_error = c.filter_stderr * std::sqrt(static_cast<double>(c.samples) / 1000);
    EXPECT_NEAR(c.accuracy, printed, 0.00005 + 3 * std::hypot(c.stderr_, prototype_error));
  };
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("grammar seed " + std::to_string(seed));
    const auto sampler = test::paper_sampler(seed);
    const Ceiling plain = ceiling(sampler, paper_task(1), 2000);
    expect_agreement(plain, task1[seed - 1]);
    expect_agreement(ceiling(sampler, paper_task(3), 2000), task3[seed - 1]);
    EXPECT_EQ(ceiling(sampler, paper_task(2), 2000).accuracy, plain.accuracy) << "longer blank gaps cost nothing";
  }
}

TEST(Ceiling, IsUnbiasedAndBelowTheUpperBound) {
  TaskConfig task = paper_task(3);
  task.test.start = 0;
  task.test.probability = 0.4;
  for (const auto& automaton : {test::twins(), test::forked()}) {
    const Ceiling c = ceiling(test::sampler(automaton, 40), task, 3000);
    EXPECT_NEAR(c.accuracy, c.filter_accuracy, 4 * c.filter_stderr);
    EXPECT_NEAR(c.upper_bound, c.realised, 4 * c.filter_stderr);
    EXPECT_LT(c.accuracy, c.upper_bound);
    EXPECT_LT(c.upper_bound, 1);
    EXPECT_GT(c.mean_entropy, 0);
  }
}

TEST(Ceiling, EqualsUpperBoundWithBlankGaps) {
  const Ceiling c = ceiling(test::sampler(test::twins(), 50), paper_task(2), 500);
  EXPECT_NEAR(c.accuracy, c.upper_bound, 1e-12);
  EXPECT_EQ(c.filter_accuracy, c.last_frame_accuracy);
}

TEST(Ceiling, DoesNotDependOnThreads) {
  const auto sampler = test::sampler(test::forked(), 30);
  const Ceiling one = ceiling(sampler, paper_task(1), 600, 1);
  const Ceiling three = ceiling(sampler, paper_task(1), 600, 3);
  EXPECT_EQ(one.accuracy, three.accuracy);
  EXPECT_EQ(one.stderr_, three.stderr_);
  EXPECT_EQ(one.by_position, three.by_position);
  EXPECT_EQ(one.entropy_by_position, three.entropy_by_position);
}

TEST(Ceiling, PositionsAverageToTotal) {
  const Ceiling c = ceiling(test::sampler(test::twins(), 25), paper_task(1), 200);
  ASSERT_EQ(c.by_position.size(), 25U);
  EXPECT_NEAR(std::accumulate(c.by_position.begin(), c.by_position.end(), 0.0) / 25, c.accuracy, 1e-12);
  EXPECT_NEAR(std::accumulate(c.entropy_by_position.begin(), c.entropy_by_position.end(), 0.0) / 25, c.mean_entropy,
              1e-12);
  EXPECT_LT(c.by_position[0], 1) << "both start states show one symbol";
}

TEST(Ceiling, ReportsProgressAndRejectsZeroSamples) {
  CeilingRequest request;
  request.samples = 700;
  std::vector<uint64_t> seen;
  request.progress = [&](uint64_t done) { seen.push_back(done); };
  const auto sampler = test::sampler(test::twins(), 10);
  exact_ceiling(GapTask(sampler, paper_task(0)), request);
  EXPECT_EQ(seen.back(), 700U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  request.samples = 0;
  EXPECT_THROW(exact_ceiling(GapTask(sampler, paper_task(0)), request), Error);
}

TEST(Ceiling, IsNotExactWithNoiseAboveOne) {
  TaskConfig task = paper_task(2);
  const auto sampler = test::sampler(test::twins(), 10);
  task.noise = 1;
  EXPECT_TRUE(ceiling(sampler, task, 2).exact);
  task.noise = 1.01;
  EXPECT_FALSE(ceiling(sampler, task, 2).exact);
}

// Asks for every other frame.
class HalfAsked final : public test::PartlyAsked {
 public:
  using PartlyAsked::PartlyAsked;
  void answers(const Batch& batch, int, int32_t* out) const override {
    for (int e = 0; e < batch.elements; ++e) out[e] = asks(e) ? 0 : -1;
  }
  std::unique_ptr<Estimator> estimator(Split split) const override { return all_.estimator(split); }

  static bool asks(int element) { return element % 2 == 1; }
};

TEST(ErrorCeiling, IsOverTheFramesThatHaveAnAnswer) {
  constexpr int kElements = 6;
  const auto every = test::example("tracking", kElements);
  CeilingRequest request;
  request.samples = 40;
  const ErrorCeiling all = error_ceiling(*every, request), half = error_ceiling(HalfAsked(*every), request);
  double sum = 0, asked = 0;
  for (int e = 0; e < kElements; ++e) {
    const double here = half.by_position[static_cast<size_t>(e)];
    if (!HalfAsked::asks(e)) {
      EXPECT_TRUE(std::isnan(here)) << "frame " << e;
      continue;
    }
    EXPECT_EQ(here, all.by_position[static_cast<size_t>(e)]) << "frame " << e;
    sum += here;
    ++asked;
  }
  EXPECT_NEAR(half.mse, sum / asked, 1e-12);
  EXPECT_NE(half.counted, all.counted);
}

TEST(Follow, CountsElementsSinceTheStateWasCertain) {
  const auto sampler = test::sampler(test::twins(), 60);
  const GapTask task(sampler, paper_task(1));
  Batch batch;
  task.fill(Split::test, 0, 3, batch);
  const std::unique_ptr<Oracle> filter = task.oracle(Split::test);
  for (int row = 0; row < 3; ++row) {
    const std::vector<ElementBelief> beliefs = follow(*filter, batch, row);
    ASSERT_EQ(beliefs.size(), 60U);
    int32_t since = 0;
    for (size_t e = 0; e < beliefs.size(); ++e) {
      since = beliefs[e].given_segment.entropy < 1e-7 ? 0 : since + 1;
      EXPECT_EQ(beliefs[e].since_certain, since);
      EXPECT_EQ(beliefs[e].state, batch.state[static_cast<size_t>(row) * 60 + e]);
      if (since == 0) {
        EXPECT_EQ(beliefs[e].given_segment.best, beliefs[e].state);
      }
    }
    EXPECT_EQ(beliefs[0].since_certain, 1);
  }
}

}  // namespace
}  // namespace sb
