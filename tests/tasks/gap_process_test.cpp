#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "random/philox.h"
#include "tasks/automata.h"
#include "tasks/gap_process.h"

namespace sb {
namespace {

struct Drawn {
  std::vector<uint16_t> states;
  Gaps gaps;
};

Drawn draw(const GapProcess& process, const Sampler& sampler, Split split, uint64_t index) {
  Drawn out;
  out.states.resize(static_cast<size_t>(sampler.config().length));
  sampler.sample(split, index, out.states.data());
  process.draw(split, index, out.states.data(), sampler.config().length, out.gaps);
  return out;
}

TaskConfig with(const GapConfig& gap) {
  TaskConfig task;
  task.train = gap;
  task.test = gap;
  return task;
}

// Chi-square of counted gap lengths against a law, per degree of freedom.
double misfit(const GapConfig& gap, int samples) {
  const auto sampler = test::sampler(test::twins(), 200);
  const GapProcess process(*test::sampler(test::twins(), 200, 7), with(gap));
  const std::vector<double> law = gap_length_law(gap);
  std::vector<double> seen(law.size(), 0.0);
  double total = 0;
  for (int i = 0; i < samples; ++i) {
    for (const int32_t n : draw(process, *sampler, Split::train, static_cast<uint64_t>(i)).gaps.length) {
      seen[n] += 1;
      ++total;
    }
  }
  double chi = 0;
  double freedom = -1;
  for (size_t n = 0; n < law.size(); ++n) {
    const double expected = total * law[n];
    if (expected == 0) {
      EXPECT_EQ(seen[n], 0) << "length " << n << " has probability 0";
      continue;
    }
    chi += (seen[n] - expected) * (seen[n] - expected) / expected;
    freedom += 1;
  }
  return freedom > 0 ? chi / freedom : 0;
}

TEST(GapProcess, LengthsFollowTheirDistribution) {
  EXPECT_LT(misfit({.law = GapLaw::uniform, .min = 1, .max = 10}, 1000), 2.5);
  EXPECT_LT(misfit({.law = GapLaw::uniform, .min = 0, .max = 3}, 1000), 3.5);
  EXPECT_LT(misfit({.law = GapLaw::lognormal, .min = 1, .max = 12, .mu = 1, .sigma = 0.7}, 1000), 2.5);
  EXPECT_EQ(misfit({.law = GapLaw::constant, .min = 4}, 10), 0);
  EXPECT_EQ(misfit({.law = GapLaw::none}, 10), 0);
}

TEST(GapProcess, UsesRandomWordsAsDocumented) {
  const auto sampler = test::sampler(test::twins(), 50);
  const GapConfig gap{.law = GapLaw::uniform, .min = 2, .max = 9, .probability = 0.3, .start = 7};
  const uint64_t seed = 123456789012345;
  const GapProcess process(*test::sampler(test::twins(), 50, seed), with(gap));
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    const Drawn drawn = draw(process, *sampler, split, 41);
    const PhiloxStream places(seed, static_cast<uint32_t>(split), 41, Purpose::gap_place);
    const PhiloxStream lengths(seed, static_cast<uint32_t>(split), 41, Purpose::gap_length);
    for (uint32_t e = 0; e < 50; ++e) {
      const auto halves = static_cast<int32_t>(uint64_t{lengths.word(e)} * 14 >> 32);
      const bool there = e >= 7 && places.word(e) < 1288490189;  // round(0.3 * 2^32)
      EXPECT_EQ(drawn.gaps.length[e], there ? 2 + (halves + 1) / 2 : 0) << "element " << e;
    }
  }
}

TEST(GapProcess, SampleDependsOnlyOnSeedSplitAndIndex) {
  const auto sampler = test::sampler(test::twins(), 100);
  TaskConfig task = paper_task(3);
  task.train.start = task.test.start = 0;
  const GapProcess process(*test::sampler(test::twins(), 100, 3), task);
  const GapProcess other_seed(*test::sampler(test::twins(), 100, 4), task);
  const Drawn once = draw(process, *sampler, Split::train, 5);
  draw(process, *sampler, Split::train, 6);
  const Drawn again = draw(process, *sampler, Split::train, 5);
  EXPECT_EQ(once.gaps.length, again.gaps.length);
  EXPECT_EQ(once.gaps.wrong, again.gaps.wrong);
  Gaps elsewhere;
  process.draw(Split::test, 5, once.states.data(), 100, elsewhere);
  EXPECT_NE(once.gaps.length, elsewhere.length);
  process.draw(Split::train, 6, once.states.data(), 100, elsewhere);
  EXPECT_NE(once.gaps.length, elsewhere.length);
  other_seed.draw(Split::train, 5, once.states.data(), 100, elsewhere);
  EXPECT_NE(once.gaps.length, elsewhere.length);
}

TEST(GapProcess, WrongSymbolsAreAllForbiddenSymbols) {
  const auto automaton = test::twins();
  const auto sampler = test::sampler(automaton, 100);
  const GapConfig gap{.law = GapLaw::constant, .min = 2, .probability = 0.5, .content = GapContent::forbidden_symbol};
  const GapProcess process(*sampler, with(gap));
  std::vector<std::set<int32_t>> seen(static_cast<size_t>(automaton->states()));
  for (uint64_t i = 0; i < 200; ++i) {
    const Drawn drawn = draw(process, *sampler, Split::train, i);
    size_t next = 0;
    for (size_t e = 0; e < drawn.states.size(); ++e) {
      for (int32_t n = 0; n < drawn.gaps.length[e]; ++n) seen[drawn.states[e]].insert(drawn.gaps.wrong[next++]);
    }
    EXPECT_EQ(next, drawn.gaps.wrong.size());
  }
  for (int s = 0; s < automaton->states(); ++s) {
    EXPECT_EQ(std::vector<int32_t>(seen[s].begin(), seen[s].end()), process.forbidden(s)) << "state " << s;
  }
  EXPECT_EQ(process.forbidden(0), (std::vector<int32_t>{0, 1, 2, 3})) << "after '#' any class";
  EXPECT_EQ(process.forbidden(1), (std::vector<int32_t>{1, 3}));
}

TEST(GapProcess, StateWithoutForbiddenSymbolsHasNoGap) {
  const auto automaton = test::forked();
  const auto sampler = test::sampler(automaton, 60);
  const GapConfig gap{.law = GapLaw::constant, .min = 1, .content = GapContent::forbidden_symbol};
  const GapProcess process(*sampler, with(gap));
  EXPECT_TRUE(process.forbidden(1).empty());
  const Drawn drawn = draw(process, *sampler, Split::train, 0);
  EXPECT_TRUE(std::count(drawn.states.begin(), drawn.states.end(), 1) > 0);
  for (size_t e = 0; e < drawn.states.size(); ++e) EXPECT_EQ(drawn.gaps.length[e], drawn.states[e] == 1 ? 0 : 1);
}

TEST(GapProcess, OnlyTrainSplitUsesTrainDistribution) {
  const GapProcess process(*test::sampler(test::twins(), 10), paper_task(2));
  EXPECT_EQ(process.law(Split::train).law, GapLaw::uniform);
  for (const Split split : {Split::valid, Split::test, Split::reference}) {
    EXPECT_EQ(process.law(split).law, GapLaw::constant);
  }
}

}  // namespace
}  // namespace sb
