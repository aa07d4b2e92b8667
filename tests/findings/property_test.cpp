// Over generated sets of results: runs that are not of a claim's population change nothing about its verdict, whatever
// they are called, and what is said of a comparison follows from its interval.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "findings/page.h"
#include "worlds.h"

namespace sb::test {
namespace {

// Seven models, two tasks; effects and spreads at random.
std::vector<TableRun> world(std::mt19937_64& engine) {
  std::normal_distribution<double> normal;
  const double spread = std::pow(10, -1 - static_cast<double>(engine() % 3));
  std::map<std::string, double> effect;
  const std::string seeds = engine() % 2 ? "[1, 2, 3]" : "[1, 2, 3, 4, 5]";
  return small_runs("[grid]\ntask.number = [1, 3]\nmodel.name = " + std::string(seven) + "\nrun.seed = " + seeds + "\n",
                    [&](Result& r) {
                      const auto [at, fresh] = effect.emplace(r.model + std::to_string(r.task), 0);
                      if (fresh) at->second = .1 * normal(engine);
                      set_accuracy(r, std::clamp(.5 + at->second + spread * normal(engine), 0.0, .98));
                    });
}

// Runs that no comparison on tasks 1 and 3 may take.
std::vector<TableRun> decoys(std::mt19937_64& engine) {
  static const std::vector<std::string> others = {
      "[train]\nupdates = 100\n[grid]\nrun.seed = [11]\n",
      "[task]\nnoise = 0.5\n[grid]\nrun.seed = [11, 12]\n",
      "[grid]\nmodel.mlp = [3]\nrun.seed = [1, 2, 3]\n",
      "[grid]\nmodel.dropout = [0.7]\nrun.seed = [11]\n",
      "[quirks]\nfirst_lr_zero = true\n[grid]\nrun.seed = [1, 2, 3]\n",
      "[grid]\nmodel.width = [16]\nrun.seed = [1, 2, 3]\n",
      "[task]\nobjective = \"predict\"\n[grid]\nrun.seed = [1, 2, 3, 4]\n",
      "[grid]\ngrammar.depth = [20]\nrun.seed = [11]\n",
  };
  std::vector<TableRun> out;
  for (const auto& text : others) {
    if (engine() % 2) continue;
    for (auto& run :
         small_runs(text + "task.number = [1, 3]\nmodel.name = [\"delta_net\", \"gated_delta_net\", \"mamba2\"]\n")) {
      if (run.result.width == 16) run.result.params = 50'000;
      run.result.test->accuracy = noise_of(run.result.run_id);
      out.push_back(std::move(run));
    }
  }
  return out;
}

std::string told(const Rows& rows, const std::string& claim) {
  const ScaleVerdict v = judged(rows, claim);
  std::string out = to_string(v.verdict);
  for (const auto& one : v.comparisons)
    out += "; " + one.comparison->name() + " " + effect_text(*one.comparison, one.effect.mean) + " " +
           interval_text(one) + " " + evidence_text(one) + " " + to_string(one.verdict);
  return out;
}

TEST(Population, IsSelectedByConfigDespiteOtherRuns) {
  std::mt19937_64 engine(21);
  for (int trial = 0; trial < 12; ++trial) {
    auto runs = world(engine);
    const Rows plain = rows_from(runs);
    for (auto& run : decoys(engine)) runs.push_back(std::move(run));
    std::shuffle(runs.begin(), runs.end(), engine);
    for (auto& run : runs) {
      run.folder = "x" + std::to_string(engine());
      if (engine() % 3 == 0) run.result.label = "";
    }
    const Rows mixed = rows_from(runs);
    for (const char* claim : {"gates", "mixing_not_needed", "complementary_gating"})
      EXPECT_EQ(told(plain, claim), told(mixed, claim)) << trial;
  }
}

TEST(Verdicts, FollowFromTheirIntervals) {
  std::mt19937_64 engine(22);
  std::map<Verdict, size_t> seen;
  for (int trial = 0; trial < 12; ++trial) {
    const Rows rows = rows_from(world(engine));
    for (const auto& claim : shipped_claims().claims) {
      const ScaleVerdict v = judged(rows, claim.id);
      size_t supported = 0, parts = 0;
      for (const auto& one : v.comparisons) {
        const Comparison& c = *one.comparison;
        if (!c.reported) {
          ++parts;
          supported += one.verdict == Verdict::supported;
        }
        if (one.exact) continue;
        ++seen[one.verdict];
        EXPECT_EQ(one.verdict == Verdict::undecided || !one.held, !one.decides.empty()) << c.name();
        if (!one.interval) {
          EXPECT_EQ(one.verdict, Verdict::undecided) << c.name();
          continue;
        }
        EXPECT_TRUE(one.interval->low <= one.effect.mean && one.effect.mean <= one.interval->high);
        const bool up = c.asks == Asks::above || c.asks == Asks::at_least;
        const bool strict = c.asks == Asks::above || c.asks == Asks::below;
        const double low = up ? one.interval->low - c.reference : c.reference - one.interval->high;
        const double high = up ? one.interval->high - c.reference : c.reference - one.interval->low;
        EXPECT_EQ(one.verdict == Verdict::supported, low > (strict ? c.delta : -c.delta)) << c.name();
        EXPECT_EQ(one.verdict == Verdict::contradicted, high < -c.delta && low <= (strict ? c.delta : -c.delta))
            << c.name();
        if (one.verdict == Verdict::equivalent) {
          const auto narrow = *one.effect.interval(equivalence_error);
          EXPECT_TRUE(strict && std::abs(narrow.low - c.reference) < c.delta &&
                      std::abs(narrow.high - c.reference) < c.delta)
              << c.name();
        }
      }
      EXPECT_EQ(v.parts, parts);
      EXPECT_EQ(v.verdict == Verdict::supported, parts > 0 && supported == parts) << claim.id;
    }
    EXPECT_FALSE(findings_pages(rows, shipped_claims(), "results/").front.empty());
  }
  EXPECT_GT(seen[Verdict::supported], 20U);
  EXPECT_GT(seen[Verdict::contradicted], 20U);
  EXPECT_GT(seen[Verdict::undecided], 20U);
}

}  // namespace
}  // namespace sb::test
