#include "tasks/baselines.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tasks/automata.h"
#include "tasks/ceiling.h"

namespace sb {
namespace {

// A string is always 1 2 3 #, so each class names its state but 2 and 3 share one class.
std::shared_ptr<const Automaton> one_string() {
  return test::automaton(3, {0, 1, 2, 2}, {1}, {{1, 2, 1}, {2, 3, 1}, {3, 0, 1}});
}

// Accuracy of the table learner after each number of training samples.
std::vector<double> learning_curve(const std::shared_ptr<const Sampler>& sampler, const TaskConfig& task,
                                   uint64_t test_samples) {
  std::vector<double> out;
  for (const uint64_t samples : {1, 30, 3000})
    out.push_back(baselines(sampler, task, samples, test_samples, 0).table_learner);
  return out;
}

TEST(Baselines, AreExactOnKnownString) {
  const Baselines b = baselines(test::sampler(one_string(), 40), paper_task(0), 5, 5, 1);
  EXPECT_DOUBLE_EQ(b.chance, 0.25);
  EXPECT_DOUBLE_EQ(b.majority, 0.25);
  EXPECT_DOUBLE_EQ(b.n_gram[0], 0.75) << "one symbol cannot tell the second from the third";
  EXPECT_DOUBLE_EQ(b.n_gram[1], 1);
  EXPECT_DOUBLE_EQ(b.n_gram[3], 1);
  EXPECT_DOUBLE_EQ(b.table_learner, 1);
}

TEST(Baselines, DoNotDependOnBlankGaps) {
  const auto sampler = test::sampler(test::forked(), 50);
  const Baselines bare = baselines(sampler, paper_task(0), 50, 50, 1);
  const Baselines gapped = baselines(sampler, paper_task(2), 50, 50, 1);
  EXPECT_EQ(bare.n_gram, gapped.n_gram);
  EXPECT_EQ(bare.table_learner, gapped.table_learner);
}

TEST(TableLearner, ApproachesTheCeilingAsSamplesGrow) {
  const auto sampler = test::sampler(build_automaton({9, 8, 12, -1, 4, 1}), 100);
  for (const int number : {1, 3}) {
    SCOPED_TRACE("task " + std::to_string(number));
    const std::vector<double> curve = learning_curve(sampler, paper_task(number), 100);
    CeilingRequest request;
    request.samples = 100;
    const Ceiling best = exact_ceiling(GapTask(sampler, paper_task(number)), request);
    EXPECT_LT(curve[0], curve[1]);
    EXPECT_LT(curve[1], curve[2]);
    EXPECT_GT(curve[2], best.filter_accuracy - 0.01);
    EXPECT_LT(curve[2], best.filter_accuracy + 0.005);
  }
}

TEST(TableLearner, BeatsNGramsAtPaperScale) {
  const Baselines b = baselines(test::paper_sampler(1), paper_task(1), 1000, 50, 0);
  EXPECT_LT(b.majority, b.n_gram[0]);
  EXPECT_LT(b.n_gram[0], b.n_gram[1]);
  EXPECT_LT(b.n_gram[1], b.n_gram[2]);
  EXPECT_GT(b.n_gram[0], 0.05);
  EXPECT_LT(b.n_gram[0], 0.07);
  EXPECT_GT(b.table_learner, 0.97);
}

// Every class may follow every state, so nothing is forbidden and there are no gaps; a learner that has not seen all
// of them expects one with certainty.
TEST(TableLearner, HandlesExpectedGapThatNeverComes) {
  const auto sampler = test::sampler(build_automaton({12, 0, 1, 1.0, 4, 1}), 20);
  TaskConfig task = paper_task(3);
  for (GapConfig* gap : {&task.train, &task.test}) {
    gap->law = GapLaw::constant;
    gap->content = GapContent::forbidden_symbol;
    gap->probability = 1;
    gap->start = 0;
    gap->min = 2;
  }
  const std::vector<double> curve = learning_curve(sampler, task, 20);
  EXPECT_GT(curve[0], 0.2);
  EXPECT_GE(curve[2], curve[0]);
  EXPECT_GT(curve[2], 0.99);
}

TEST(Baselines, DoNotDependOnThreadsAndRequireSamples) {
  const auto sampler = test::sampler(test::forked(), 30);
  EXPECT_EQ(baselines(sampler, paper_task(3), 20, 64, 1).table_learner,
            baselines(sampler, paper_task(3), 20, 64, 3).table_learner);
  EXPECT_THROW(baselines(sampler, paper_task(0), 0, 1, 1), Error);
  EXPECT_THROW(baselines(sampler, paper_task(0), 1, 0, 1), Error);
}

TEST(Baselines, AreScoredOnRequestedSamples) {
  const auto sampler = test::sampler(test::forked(), 30);
  const auto on = [&](Split split, uint64_t first) {
    return baselines(sampler, paper_task(1), 40, 10, 1, split, first).n_gram;
  };
  EXPECT_EQ(on(Split::test, 0), baselines(sampler, paper_task(1), 40, 10, 1).n_gram);
  EXPECT_NE(on(Split::test, 0), on(Split::valid, 0));
  EXPECT_NE(on(Split::test, 0), on(Split::test, 10));
  TaskConfig apart = paper_task(0);
  apart.test = {.law = GapLaw::constant, .content = GapContent::forbidden_symbol};
  EXPECT_LT(baselines(sampler, apart, 40, 10, 1, Split::test, 0).n_gram[1],
            baselines(sampler, apart, 40, 10, 1, Split::train, 100).n_gram[1])
      << "each split has its own gaps";
}

}  // namespace
}  // namespace sb
