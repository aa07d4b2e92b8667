// The intervals have the coverage they claim and the family the error it claims, on results with known truth: effects
// of grammars, of models on grammars, of seeds, and noise of the test set.
#include "report/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace sb::test {
namespace {

TEST(Student, QuantilesMatchTables) {
  struct Known {
    double probability, degrees, value;
  };
  for (const auto& [p, df, value] :
       {Known{.975, 1, 12.706204736432095}, Known{.975, 2, 4.302652729911275}, Known{.975, 3, 3.182446305284263},
        Known{.975, 7, 2.364624251592785}, Known{.975, 30, 2.042272456301238}, Known{.995, 3, 5.840909309733355},
        Known{.9995, 4, 8.610301581379238}, Known{.95, 10, 1.8124611228107335}, Known{.9, 5, 1.4758840488244815},
        Known{.975, 1000, 1.9623390808264078}}) {
    EXPECT_NEAR(student_quantile(p, df) / value, 1, 1e-9) << p << " " << df;
    EXPECT_NEAR(student_quantile(1 - p, df) / value, -1, 1e-9);
    EXPECT_NEAR(student_cdf(value, df), p, 1e-10);
  }
  EXPECT_DOUBLE_EQ(student_cdf(1, 1), .75);
  EXPECT_DOUBLE_EQ(student_cdf(0, 5), .5);
  EXPECT_EQ(student_quantile(.5, 3), 0);
  // Holm's smallest errors at few degrees reach far into the tail; of two degrees t = (2p-1)/sqrt(2p(1-p)).
  for (const double p : {.6, .99, .9999, .999999})
    EXPECT_NEAR(student_quantile(p, 2) / ((2 * p - 1) / std::sqrt(2 * p * (1 - p))), 1, 1e-9) << p;
}

// Accuracy of a model on a grammar, mean over seeds: truth + grammar + model on grammar + seed + noise.
class Simulation {
 public:
  explicit Simulation(uint64_t seed) : engine_(seed) {}

  double gauss(double sd) { return sd * normal_(engine_); }
  double flat(double sd) { return sd * std::sqrt(3.0) * (2 * uniform_(engine_) - 1); }  // bounded, not normal

  std::vector<double> seeds(double mean, int count) {
    std::vector<double> out;
    for (int s = 0; s < count; ++s) out.push_back(mean + gauss(.01) + gauss(.003));
    return out;
  }
  double grammar_effect() { return flat(.05); }
  double interaction() { return .7 * flat(.01) + .7 * gauss(.01); }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

double mean(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

constexpr double truth = .02;  // a is above b by so much

// Differences of means by grammar.
std::vector<double> draw(Simulation& world, int grammars, int seeds) {
  std::vector<double> out;
  for (int g = 0; g < grammars; ++g) {
    const double common = .7 + world.grammar_effect();
    const auto a = world.seeds(common + truth + world.interaction(), seeds);
    const auto b = world.seeds(common + world.interaction(), seeds);
    out.push_back(mean(a) - mean(b));
  }
  return out;
}

bool covers(const Interval& interval) {
  return interval.low <= truth && truth <= interval.high;
}

TEST(Coverage, IsNominalForPairedDifferencesOverGrammars) {
  constexpr int worlds = 20000;
  for (const int grammars : {3, 4, 8})
    for (const int seeds : {1, 3}) {
      Simulation world(100 + static_cast<uint64_t>(grammars * 10 + seeds));
      int covered = 0;
      for (int i = 0; i < worlds; ++i) covered += covers(*estimate(draw(world, grammars, seeds)).interval(.05));
      EXPECT_NEAR(covered / double(worlds), .95, .02) << grammars << " grammars, " << seeds << " seeds";
    }
}

TEST(Coverage, IsNominalForMeanOverGrammars) {
  constexpr int worlds = 20000;
  for (const int grammars : {3, 4, 8}) {
    Simulation world(200 + static_cast<uint64_t>(grammars));
    int covered = 0;
    for (int i = 0; i < worlds; ++i) {
      std::vector<double> means;
      for (int g = 0; g < grammars; ++g) means.push_back(mean(world.seeds(truth + world.gauss(.05), 2)));
      covered += covers(*estimate(means).interval(.05));
    }
    EXPECT_NEAR(covered / double(worlds), .95, .02) << grammars;
  }
}

// Seven models on three tasks: the eighteen comparisons of DeltaNet with the others, which share its runs.
double family_wise_errors(int grammars, double effect_of_half, uint64_t seed) {
  constexpr int worlds = 4000, models = 7, tasks = 3;
  Simulation world(seed);
  int wrong = 0;
  for (int i = 0; i < worlds; ++i) {
    std::vector<std::optional<double>> p;
    std::vector<bool> null;
    for (int t = 0; t < tasks; ++t) {
      std::vector<std::vector<double>> by_model(models);
      for (int g = 0; g < grammars; ++g) {
        const double common = .6 + world.grammar_effect();
        for (int m = 0; m < models; ++m)
          by_model[m].push_back(mean(world.seeds(common + (m % 2 == 1 ? effect_of_half : 0) + world.interaction(), 1)));
      }
      for (int m = 1; m < models; ++m) {
        std::vector<double> differences;
        for (int g = 0; g < grammars; ++g) differences.push_back(by_model[m][g] - by_model[0][g]);
        p.push_back(estimate(differences).p_against(0));
        null.push_back(m % 2 == 0 || effect_of_half == 0);
      }
    }
    const auto steps = holm(p, .05);
    bool any = false;
    for (size_t c = 0; c < steps.size(); ++c) any |= null[c] && steps[c].decided;
    wrong += any;
  }
  return wrong / double(worlds);
}

TEST(FamilyWiseError, IsAtMostSixPercent) {
  for (const int grammars : {3, 4, 8}) {
    EXPECT_LE(family_wise_errors(grammars, 0, 500 + static_cast<uint64_t>(grammars)), .06) << grammars;
    EXPECT_LE(family_wise_errors(grammars, .2, 600 + static_cast<uint64_t>(grammars)), .06) << grammars;
  }
}

TEST(Holm, StepsDownAndStops) {
  const std::vector<std::optional<double>> p = {.04, .001, std::nullopt, .012};
  const auto steps = holm(p, .05);
  EXPECT_TRUE(steps[1].decided);
  EXPECT_DOUBLE_EQ(steps[1].error, .05 / 4);
  EXPECT_TRUE(steps[3].decided);
  EXPECT_DOUBLE_EQ(steps[3].error, .05 / 3);
  EXPECT_FALSE(steps[0].decided);
  EXPECT_DOUBLE_EQ(steps[0].error, .05 / 2);
  EXPECT_FALSE(steps[2].decided);
  EXPECT_DOUBLE_EQ(steps[2].error, .05 / 2);
  EXPECT_TRUE(holm({}, .05).empty());
}

TEST(Holm, DecidedIntervalsExcludeMarginAndOthersContainIt) {
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Estimate> estimates;
    std::vector<std::optional<double>> p;
    for (size_t c = 0; c < 1 + engine() % 8; ++c) {
      std::vector<double> values(1 + engine() % 6);
      const double centre = normal(engine) * 2;
      for (auto& v : values) v = centre + normal(engine);
      estimates.push_back(estimate(values));
      p.push_back(estimates.back().p_against(.3));
    }
    const auto steps = holm(p, .05);
    for (size_t c = 0; c < steps.size(); ++c) {
      const auto interval = estimates[c].interval(steps[c].error);
      ASSERT_EQ(interval.has_value(), estimates[c].n > 1);
      const bool outside = interval && (interval->low > .3 || interval->high < .3);
      EXPECT_EQ(steps[c].decided, outside);
    }
  }
}

TEST(EstimateOf, HandlesFewValues) {
  EXPECT_EQ(estimate({}).n, 0U);
  const std::vector<double> one = {.4}, same = {.4, .4};
  EXPECT_FALSE(estimate(one).interval(.05).has_value());
  EXPECT_FALSE(estimate(one).p_against(0).has_value());
  EXPECT_EQ(estimate(same).p_against(0), 0.0);
  EXPECT_EQ(estimate(same).p_against(.4), 1.0);
  EXPECT_FALSE(estimate(same).needed(0, .05).has_value());
}

TEST(EstimateOf, NeededIsFirstCountWhoseIntervalExcludesValue) {
  const std::vector<double> values = {.01, .03, -.01, .05};
  const Estimate e = estimate(values);
  const size_t needed = e.needed(0, .05).value();
  const auto half = [&](size_t n) {
    return student_quantile(.975, static_cast<double>(n - 1)) * *e.sd / std::sqrt(static_cast<double>(n));
  };
  EXPECT_GT(needed, 4U);
  EXPECT_LT(half(needed), e.mean);
  EXPECT_GE(half(needed - 1), e.mean);
  EXPECT_FALSE(e.needed(e.mean, .05).has_value());
}

TEST(SlopeAndRankCorrelation, MatchKnownValues) {
  const std::vector<double> x = {1, 2, 4}, y = {5, 3, -1}, flat = {2, 2, 2};
  EXPECT_DOUBLE_EQ(*slope(x, y), -2);
  EXPECT_FALSE(slope(flat, y).has_value());
  const std::vector<double> down = {3, 2, 1}, tied = {1, 1, 2};
  EXPECT_DOUBLE_EQ(*rank_correlation(x, x), 1);
  EXPECT_DOUBLE_EQ(*rank_correlation(x, down), -1);
  EXPECT_NEAR(*rank_correlation(x, tied), 2 / std::sqrt(6.0), 1e-12);
  EXPECT_FALSE(rank_correlation(x, flat).has_value());
}

}  // namespace
}  // namespace sb::test
