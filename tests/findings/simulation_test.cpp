// Verdicts in simulated worlds with a known truth: 10,000 draws each.
//
// A draw has one difference per grammar, normal around the truth. delta is one point, the spread half of it, and there
// are four grammars, unless a world says otherwise. A verdict is wrong if it is
//   supported     of "a is above b" while the truth is not above delta, of "at least" while it is below -delta,
//   contradicted  while the truth is not below -delta,
//   equivalent    while the truth is not within ±delta,
// and for a claim of several parts: supported while some part's truth does not support it, contradicted while no part's
// truth is below -delta. Errors are most frequent at the bounds, where the truth is ±delta: just inside a bound
// supported and contradicted are wrong, just outside equivalent is.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "worlds.h"

namespace sb::test {
namespace {

constexpr int draws = 10'000;
constexpr double delta = .01, spread = delta / 2;
constexpr double most_wrong = .06, least_right = .9;

class World {
 public:
  World(uint64_t seed, Asks asks, std::vector<double> truths, size_t grammars = 4)
      : engine_(seed), truths_(std::move(truths)), grammars_(grammars) {
    comparison_.asks = asks;
    comparison_.delta = delta;
    comparison_.a = {ArmModel{"a", {}, {}}};
    comparison_.b = {ArmModel{"b", {}, {}}};
  }

  // How often the claim has each verdict.
  double share(Verdict verdict) {
    if (counts_ == std::array<int, 4>{})
      for (int i = 0; i < draws; ++i) ++counts_[static_cast<size_t>(draw().verdict)];
    return counts_[static_cast<size_t>(verdict)] / double(draws);
  }

 private:
  ScaleVerdict draw() {
    ScaleVerdict out;
    for (const double truth : truths_) {
      std::vector<double> values;
      for (size_t g = 0; g < grammars_; ++g) values.push_back(truth + spread * normal_(engine_));
      ComparisonVerdict one;
      one.comparison = &comparison_;
      one.figures.found = true;
      one.effect = estimate(values);
      one.verdict = verdict_of(comparison_, one.effect);
      out.comparisons.push_back(std::move(one));
    }
    conclude(out);
    return out;
  }

  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
  Comparison comparison_;
  std::vector<double> truths_;
  size_t grammars_;
  std::array<int, 4> counts_{};
};

TEST(SimulatedWorlds, EquivalentModelsAreNeitherAboveNorBelow) {
  for (const size_t grammars : {2, 3, 4, 8}) {
    World world(1, Asks::above, {0}, grammars);
    EXPECT_LE(world.share(Verdict::supported) + world.share(Verdict::contradicted), most_wrong) << grammars;
  }
  World world(2, Asks::above, {0});
  EXPECT_GE(world.share(Verdict::equivalent), .6);
}

TEST(SimulatedWorlds, VerdictsAtBoundsAreWrongInAtMostSixPercent) {
  for (const size_t grammars : {2, 3, 4, 8}) {
    for (World world : {World(3, Asks::above, {delta}, grammars), World(4, Asks::above, {-delta}, grammars)}) {
      EXPECT_LE(world.share(Verdict::supported) + world.share(Verdict::contradicted), most_wrong) << grammars;
      EXPECT_LE(world.share(Verdict::equivalent), most_wrong) << grammars;
    }
    World least(5, Asks::at_least, {-delta}, grammars);
    EXPECT_LE(least.share(Verdict::supported) + least.share(Verdict::contradicted), most_wrong) << grammars;
  }
}

TEST(SimulatedWorlds, DetectEffectOfThreeDelta) {
  World above(6, Asks::above, {3 * delta}), below(7, Asks::above, {-3 * delta}), turned(8, Asks::below, {-3 * delta});
  EXPECT_GE(above.share(Verdict::supported), least_right);
  EXPECT_GE(below.share(Verdict::contradicted), least_right);
  EXPECT_GE(turned.share(Verdict::supported), least_right);
  World least(9, Asks::at_least, {3 * delta}), fails(10, Asks::at_least, {-3 * delta}),
      most(11, Asks::at_most, {-3 * delta});
  EXPECT_GE(least.share(Verdict::supported), least_right);
  EXPECT_GE(fails.share(Verdict::contradicted), least_right);
  EXPECT_GE(most.share(Verdict::supported), least_right);
  World three(12, Asks::above, {3 * delta, 3 * delta, 3 * delta});
  EXPECT_GE(three.share(Verdict::supported), least_right);
}

// One part of many that comes out badly by chance must not decide a claim.
TEST(SimulatedWorlds, OneUnluckyPartOfEighteenDoesNotDecideClaim) {
  World equal(13, Asks::above, std::vector<double>(18, 0));
  EXPECT_LE(equal.share(Verdict::supported) + equal.share(Verdict::contradicted), most_wrong);
  World bound(14, Asks::above, std::vector<double>(18, -delta));
  EXPECT_LE(bound.share(Verdict::supported) + bound.share(Verdict::contradicted), most_wrong);
  EXPECT_LE(bound.share(Verdict::equivalent), most_wrong);
  // Seventeen large effects do not carry an eighteenth that is no more than delta.
  std::vector<double> truths(18, 6 * delta);
  truths.back() = delta;
  World one(15, Asks::above, truths);
  EXPECT_LE(one.share(Verdict::supported) + one.share(Verdict::contradicted) + one.share(Verdict::equivalent),
            most_wrong);
  // And one that is truly contradicted is found among them.
  truths.back() = -6 * delta;
  World fails(16, Asks::above, truths);
  EXPECT_GE(fails.share(Verdict::contradicted), least_right);
}

// Without the rule for failed runs, a collapsed seed would look like an effect and like spread.
TEST(SimulatedWorlds, OneCollapsedSeedLeavesComparisonUndecided) {
  auto runs = small_runs(
      "[grid]\ntask.number = [1]\nmodel.name = [\"delta_net\", \"gated_delta_net\"]\nrun.seed = [1, 2, 3, 4]\n",
      [](Result& r) {
        r.baselines = BaselineFigures{.009, {}, {.06, .2}, 2, .01, 1000, 50};
      });
  const Claims& claims = shipped_claims();
  Claim claim = *claims.find("gates");
  claim.comparisons.resize(1);
  std::mt19937_64 engine(17);
  std::normal_distribution<double> normal;
  int decided = 0, named = 0;
  for (int i = 0; i < draws; ++i) {
    const size_t collapsed = engine() % runs.size();
    for (size_t r = 0; r < runs.size(); ++r)
      set_accuracy(runs[r].result, r == collapsed ? .03 : .5 + spread * normal(engine));
    const ScaleVerdict v = judge(rows_from(runs), claims, claim, *claims.scale("small"), corrected_protocol);
    decided += v.verdict != Verdict::undecided;
    for (const auto& what : v.comparisons[0].decides)
      named += what.find(runs[collapsed].result.run_id) != std::string::npos;
  }
  EXPECT_EQ(decided, 0);
  EXPECT_EQ(named, draws);
}

}  // namespace
}  // namespace sb::test
