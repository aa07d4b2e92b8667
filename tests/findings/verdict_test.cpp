#include "findings/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../base/expect.h"
#include "worlds.h"

namespace sb::test {
namespace {

TEST(Claim, IsSupportedIfEveryIntervalLiesAboveDelta) {
  const Rows rows = rows_from(table_runs(as_in_the_paper));
  const ScaleVerdict v = judged(rows, "attention_leads");
  // The paper's lead over Gated DeltaNet on task 2 is one point: not above delta.
  EXPECT_EQ(v.verdict, Verdict::undecided);
  EXPECT_EQ(v.parts, 12U);
  const ScaleVerdict two =
      judged(rows_from(table_runs([](const Result& r) { return r.model == "transformer" ? .9 : as_in_the_paper(r); })),
             "attention_leads");
  EXPECT_EQ(two.verdict, Verdict::supported);
  EXPECT_EQ(two.supported, 12U);
  EXPECT_EQ(two.words(), "supported");
  for (const auto& one : two.comparisons) {
    if (one.comparison->reported) continue;
    EXPECT_EQ(one.verdict, Verdict::supported) << one.comparison->name();
    EXPECT_EQ(one.effect.n, 4U);
    EXPECT_GT(one.interval->low, .01);
    EXPECT_TRUE(one.decides.empty());
    EXPECT_FALSE(one.paper.has_value()) << "differences to the paper are shown at its scale only";
  }
}

TEST(Claim, ReportsHowManyPartsAreContradicted) {
  const Rows rows = rows_from(table_runs(
      [](const Result& r) { return r.model == "transformer" ? (r.task == 3 ? .1 : .9) : as_in_the_paper(r); }));
  const ScaleVerdict v = judged(rows, "attention_leads");
  EXPECT_EQ(v.verdict, Verdict::contradicted);
  EXPECT_EQ(v.words(), "contradicted in 6 of 12, supported in 6");
  EXPECT_EQ(v.supported, 6U);
}

TEST(Claim, IsEquivalentIfNarrowIntervalLiesWithinDelta) {
  const Rows rows = rows_from(table_runs([](const Result&) { return .5; }));
  const ScaleVerdict v = judged(rows, "attention_leads");
  EXPECT_EQ(v.verdict, Verdict::equivalent);
  EXPECT_EQ(v.words(), "equivalent");
  // "At least" has no such verdict: as good is good enough.
  EXPECT_EQ(judged(rows, "mixing_not_needed").comparisons[0].verdict, Verdict::supported);
}

// Two models on task 1 of four grammars; their difference has this mean and a spread of .0037.
Rows two_models(const std::string& a, const std::string& b, double effect) {
  static constexpr double spread[] = {.004, -.004, .002, -.002};
  return rows_from(
      small_runs("[grid]\ntask.number = [1]\nmodel.name = [\"" + a + "\", \"" + b + "\"]\nrun.seed = [1, 2, 3, 4]\n",
                 [&](Result& r) { set_accuracy(r, .5 + (r.model == a ? effect + spread[r.grammar_seed - 1] : 0)); }));
}

TEST(Claim, IsUndecidedIfBothArmsAreAtTheCeiling) {
  const Rows rows = rows_from(table_runs([](const Result&) { return .98; }));  // the ceiling is .99
  const ScaleVerdict v = judged(rows, "attention_leads");
  EXPECT_EQ(v.verdict, Verdict::undecided);
  EXPECT_EQ(v.comparisons[0].words(), "undecided (at the ceiling)");
  EXPECT_EQ(v.comparisons[0].decides,
            std::vector<std::string>{"a larger grammar: the models are at the ceiling of this one"});
  EXPECT_EQ(judged(rows, "mixing_not_needed").comparisons[0].words(), "undecided (at the ceiling)");
  EXPECT_EQ(judged(rows, "failure_signatures").comparisons[0].words(), "undecided (at the ceiling)");
  // A difference that is there is there at the ceiling too.
  const Rows apart = rows_from(table_runs([](const Result& r) { return r.model == "transformer" ? .99 : .972; }));
  EXPECT_EQ(judged(apart, "attention_leads").words(), "supported");
  const auto on_two = [](double lower) {
    const Rows rows =
        rows_from(table_runs([=](const Result& r) { return r.model == "transformer" ? .985 : lower; }, "[1, 2]"));
    return judged(rows, "attention_leads").comparisons[0].words();
  };
  EXPECT_EQ(on_two(.985), "undecided (at the ceiling)") << "no more grammars would decide";
  EXPECT_EQ(on_two(.972), "undecided (two grammars)");
}

TEST(Claim, IsUndecidedOnTwoGrammars) {
  const Rows rows = rows_from(table_runs([](const Result& r) { return r.model == "transformer" ? .9 : .5; }, "[1, 2]"));
  const ScaleVerdict v = judged(rows, "attention_leads");
  EXPECT_EQ(v.words(), "undecided");
  EXPECT_EQ(v.comparisons[0].words(), "undecided (two grammars)");
  EXPECT_FALSE(v.comparisons[0].interval.has_value()) << "two values do not tell their spread";
  EXPECT_NEAR(v.comparisons[0].effect.mean, .4, .01);
}

TEST(Comparison, HasIntervalWithinPossibleDifferences) {
  static constexpr double accuracy[] = {.9, .1, .9};
  const Rows rows = rows_from(table_runs(
      [](const Result& r) { return r.model == "transformer" ? accuracy[r.grammar_seed - 1] : .5; }, "[1, 2, 3]"));
  const auto one = judged(rows, "attention_leads").comparisons[0];
  EXPECT_EQ(one.interval->low, -1);
  EXPECT_EQ(one.interval->high, 1);
  EXPECT_EQ(one.decides, std::vector<std::string>{"more grammars; three are too few to estimate how many"});
}

// An effect of 3 points whose interval over four grammars excludes 1 point at 5 %, but not at a twelfth of that.
TEST(Comparison, IsMarkedAndNotCountedIfHolmWithholdsIt) {
  static constexpr double spread[] = {.009, -.009, .004, -.004};
  const Rows rows = rows_from(table_runs([](const Result& r) {
    const bool lead = r.task == 3 && r.model == "gla";
    return lead ? .5 - .03 - spread[r.grammar_seed - 1] : .5;
  }));
  const ScaleVerdict v = judged(rows, "attention_leads");
  size_t marked = 0;
  for (const auto& one : v.comparisons)
    if (one.verdict == Verdict::supported) {
      ++marked;
      EXPECT_EQ(one.words(), "supported (not after Holm)") << one.comparison->name();
    }
  EXPECT_EQ(marked, 1U);
  EXPECT_EQ(v.supported, 0U);
}

// The effect of the test above, and no other comparison of the claim has runs: it is still one of twelve.
TEST(Comparison, IsOneOfAllOfItsClaimForHolm) {
  static constexpr double spread[] = {.009, -.009, .004, -.004};
  const auto runs =
      small_runs("[grid]\ntask.number = [3]\nmodel.name = ['transformer', 'gla']\nrun.seed = [1, 2, 3, 4]\n",
                 [](Result& r) { set_accuracy(r, r.model == "gla" ? .5 + .03 + spread[r.grammar_seed - 1] : .5); });
  const ScaleVerdict v = judged(rows_from(runs), "attention_leads");
  EXPECT_EQ(v.with_runs, 1U);
  const auto one = std::find_if(v.comparisons.begin(), v.comparisons.end(), [](const auto& c) { return c.has_runs(); });
  EXPECT_EQ(one->words(), "contradicted (not after Holm)");
  EXPECT_EQ(v.contradicted, 0U);
  EXPECT_EQ(v.words(), "undecided");
}

TEST(Comparison, NamesModelBelowTheNGramWhereItDrops) {
  auto runs = table_runs([](const Result& r) { return r.model == "delta_net" && r.task == 2 ? .3 : .8; });
  for (auto& run : runs) {
    run.result.baselines.emplace().n_gram = {.1, run.result.task == 2 ? .5 : .2};
    run.result.baselines->n = 2;
  }
  const auto drop_of = [](const std::vector<TableRun>& all) {
    return judged(rows_from(all), "failure_signatures").comparisons[0];
  };
  EXPECT_EQ(drop_of(runs).words(), "undecided (DeltaNet below the n-gram)");
  for (auto& run : runs) run.result.baselines->n_gram[1] = .2;
  EXPECT_EQ(drop_of(runs).words(), "supported");
}

TEST(Comparison, NamesArmsBelowTheNGram) {
  auto runs = table_runs([](const Result& r) { return r.model == "delta_net" ? .3 : .8; });
  for (auto& run : runs) {
    run.result.baselines.emplace().n_gram = {.1, .5};
    run.result.baselines->n = 2;
  }
  const auto lines = below_n_gram(judged(rows_from(runs), "gates").comparisons[0]);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("DeltaNet is below the n-gram on task 1: .")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(" against .500")) << lines[0];
  // What a model that may be trained badly lacks does not show what its mechanism lacks.
  EXPECT_EQ(judged(rows_from(runs), "gates").comparisons[0].words(), "undecided (DeltaNet below the n-gram)");
}

// On one of three grammars DeltaNet is badly trained; its mean is above the n-gram.
TEST(Comparison, AsksForBetterTrainingBelowTheNGramOfOneGrammar) {
  const auto gates = [](double n_gram) {
    auto runs = small_runs(
        "[grid]\ntask.number = [1]\nmodel.name = ['gated_delta_net', 'delta_net']\nrun.seed = [1, 2, 3]\n",
        [](Result& r) { set_accuracy(r, r.model == "delta_net" && r.grammar_seed == 2 ? .5 : .8 + wobble(r)); });
    for (auto& run : runs) {
      run.result.baselines.emplace().n_gram = {.1, n_gram};
      run.result.baselines->n = 2;
    }
    return judged(rows_from(runs), "gates");
  };
  const ScaleVerdict weak = gates(.6), strong = gates(.4);
  EXPECT_EQ(weak.comparisons[0].words(), "undecided");
  const std::string grammars = "more grammars; three are too few to estimate how many";
  EXPECT_EQ(weak.comparisons[0].decides,
            (std::vector<std::string>{"models above the n-gram, by other settings, longer training or shorter test "
                                      "samples: DeltaNet on grammar 2",
                                      grammars}));
  EXPECT_TRUE(weak.needs_more_than_grammars());
  EXPECT_EQ(strong.comparisons[0].decides, std::vector<std::string>{grammars});
  EXPECT_FALSE(strong.needs_more_than_grammars());
}

TEST(Claim, AtLeastIsContradictedOnlyBelowDelta) {
  for (const auto& [effect, verdict] : {std::pair(-.01, Verdict::undecided), std::pair(-.03, Verdict::contradicted),
                                        std::pair(-.002, Verdict::supported), std::pair(.03, Verdict::supported)})
    EXPECT_EQ(judged(two_models("mamba2", "gated_delta_net", effect), "mixing_not_needed").comparisons[0].verdict,
              verdict)
        << effect;
}

TEST(Claim, IsUndecidedNearDeltaAndEstimatesGrammarsNeeded) {
  const auto one = judged(two_models("gated_delta_net", "delta_net", .012), "gates").comparisons[0];
  EXPECT_EQ(one.verdict, Verdict::undecided);
  EXPECT_NEAR(one.interval->low, .012 - 3.1824463 * .0036514837 / 2, 1e-9);
  EXPECT_EQ(one.decides,
            std::vector<std::string>{"12 more grammars, 16 in all, if effect and spread stay as they are"});
}

TEST(Claim, IsUndecidedWithOneGrammar) {
  const ScaleVerdict v = judged(rows_from(table_runs(as_in_the_paper, "[1]")), "gates");
  EXPECT_EQ(v.verdict, Verdict::undecided);
  EXPECT_FALSE(v.comparisons[0].interval.has_value());
  EXPECT_NEAR(v.comparisons[0].effect.mean, .37, .01);
  EXPECT_EQ(v.words(), "undecided on one grammar");
  EXPECT_EQ(v.comparisons[0].decides,
            std::vector<std::string>{
                "at least 2 more grammars on which all compared models are run, because a verdict needs three"});
}

TEST(Claim, WithoutRunsNamesMissingRuns) {
  const ScaleVerdict v =
      judged(rows_from(table_runs(as_in_the_paper, "[1, 2, 3]", "[\"delta_net\", \"gla\"]")), "gates");
  EXPECT_EQ(v.verdict, Verdict::undecided);
  EXPECT_EQ(v.comparisons[0].decides,
            std::vector<std::string>{"Gated DeltaNet on task 1 at scale small, corrected protocol"});
  EXPECT_EQ(v.words(), "no runs");
  EXPECT_TRUE(judge(rows_from({}), shipped_claims(), *shipped_claims().find("gates")).scales.empty());
}

TEST(Comparison, DoesNotAffectClaimIfOnlyReported) {
  const Rows rows = rows_from(small_runs(
      "[grid]\ntask.number = [3]\nmodel.name = " + std::string(seven) + "\nrun.seed = [1, 2, 3, 4]\n", [](Result& r) {
        set_accuracy(r, (r.model == "gla" ? .3 : r.model == "mamba" ? .5 : .8) + wobble(r));
      }));
  const ScaleVerdict v = judged(rows, "complementary_gating");
  EXPECT_EQ(v.parts, 4U);
  EXPECT_EQ(v.with_runs, 2U);
  EXPECT_EQ(v.words(), "undecided, supported in 2 of 2, 2 not run");
  const auto& last = v.comparisons.back();
  EXPECT_TRUE(last.comparison->reported);
  EXPECT_EQ(v.comparisons[4].verdict, Verdict::contradicted) << v.comparisons[4].comparison->name();
}

TEST(Comparison, IsPairedAndNamesGrammarsMissingInOneArm) {
  auto runs = table_runs(as_in_the_paper);
  std::erase_if(runs, [](const TableRun& run) {
    return run.result.model == "delta_net" && run.result.task == 1 && run.result.grammar_seed == 3;
  });
  const ScaleVerdict v = judged(rows_from(runs), "gates");
  EXPECT_EQ(v.comparisons[0].effect.n, 3U);
  EXPECT_EQ(v.comparisons[0].figures.missing, std::vector<std::string>{"DeltaNet (task 1) on grammar seed 3"});
}

TEST(Comparison, UsesRunsOfOneProtocol) {
  auto runs = table_runs(as_in_the_paper, "[1, 2, 3]", "[\"delta_net\", \"gated_delta_net\"]");
  const auto others = small_runs(
      "[grid]\nmodel.dropout = [0.2]\ntask.number = [1]\nmodel.name = [\"delta_net\", \"gated_delta_net\"]\n"
      "run.seed = [1, 2, 3, 4]\n",
      [](Result& r) { set_accuracy(r, .1); });
  runs.insert(runs.end(), others.begin(), others.end());
  const Rows rows = rows_from(runs);
  const auto one = judged(rows, "gates").comparisons[0];
  EXPECT_EQ(one.effect.n, 3U);
  EXPECT_NEAR(one.effect.mean, .37, .01);
  const ClaimVerdict all = judge(rows, shipped_claims(), *shipped_claims().find("gates"));
  ASSERT_EQ(all.scales.size(), 2U);
  EXPECT_EQ(all.scales[1].protocol, "corrected but dropout 0.2");
  EXPECT_EQ(all.scales[1].comparisons[0].effect.n, 4U);
}

TEST(Comparison, AveragesSeedsWithinGrammar) {
  const auto runs = small_runs(
      "[grid]\ntask.number = [1]\nmodel.name = [\"delta_net\", \"gated_delta_net\"]\ngrammar.seed = [1, 2, "
      "3]\ntrain.seed = [1, 2]\n"
      "train.order_seed = [0, 5]\n",
      [](Result& r) {
        set_accuracy(r, as_in_the_paper(r) + .05 * static_cast<double>(r.train_seed) + .01 * double(r.grammar_seed));
      });
  const auto one = judged(rows_from(runs), "gates").comparisons[0];
  EXPECT_EQ(one.effect.n, 3U);
  EXPECT_EQ(one.figures.a.runs, 12U);
  EXPECT_EQ(one.figures.a.fewest, 4U);
  EXPECT_NEAR(one.effect.mean, .37, 1e-12);
  EXPECT_NEAR(*one.a->sd, .01, 1e-12);
  EXPECT_EQ(evidence_text(one), "3 grammars, 4 seeds each, learning rate 0.001");
}

TEST(Comparison, WithDivergedRunIsUndecidedAndNamesRunToRepeat) {
  auto runs = table_runs(as_in_the_paper);
  std::string id;
  for (auto& run : runs)
    if (run.result.model == "delta_net" && run.result.task == 1 && run.result.grammar_seed == 2) {
      id = run.result.run_id;
      run.result.status = "diverged";
      run.result.test.reset();
      run.result.valid.reset();
    }
  const Rows rows = rows_from(runs);
  const auto one = judged(rows, "gates").comparisons[0];
  EXPECT_EQ(one.verdict, Verdict::undecided);
  EXPECT_EQ(one.effect.n, 3U);
  ASSERT_EQ(one.figures.b.failed.size(), 1U);
  ASSERT_EQ(one.decides.size(), 1U);
  EXPECT_TRUE(
      has(one.decides[0], "repeat the run at a lower learning rate: delta_net, task 1, seed 2 (" + id + "): diverged"));
  EXPECT_TRUE(has(evidence_text(one), "1 failed"));
  EXPECT_TRUE(has(counts_of(rows), "1 diverged"));
}

TEST(Comparison, WithCollapsedRunIsUndecidedAndExcludesItFromMeans) {
  auto runs = table_runs(as_in_the_paper);
  for (auto& run : runs) {
    run.result.baselines = BaselineFigures{.009, {}, {.06, .2}, 2, .01, 1000, 50};
    if (run.result.model == "delta_net" && run.result.task == 1 && run.result.grammar_seed == 2)
      set_accuracy(run.result, .05);
  }
  const ScaleVerdict v = judged(rows_from(runs), "gates");
  const auto& one = v.comparisons[0];
  EXPECT_EQ(one.verdict, Verdict::undecided);
  EXPECT_EQ(one.effect.n, 3U);
  EXPECT_NEAR(one.b->mean, .5, .01);
  ASSERT_EQ(one.decides.size(), 1U);
  EXPECT_TRUE(has(one.decides[0], "collapsed: delta_net, task 1, seed 2"));
  EXPECT_EQ(v.comparisons[1].verdict, Verdict::supported) << "another task";
}

std::string text_of(const Rows& rows, const std::string& claim) {
  const Claims& claims = shipped_claims();
  return verdict_text({"test", "", "Test", "", {claim}}, {judge(rows, claims, *claims.find(claim))}, rows);
}

// What a run that is not finished leaves.
MissingRun unfinished(const TableRun& run) {
  return {run.result.run_id, run.result.config, MissingRun::Why::unfinished};
}

TEST(RunsWithoutAccuracy, AreListedByOutcome) {
  auto runs = table_runs(as_in_the_paper);
  std::vector<MissingRun> missing;
  std::string diverged;
  std::erase_if(runs, [&](TableRun& run) {
    if (run.result.model != "delta_net" || run.result.task != 1) return false;
    if (run.result.grammar_seed == 2) {
      diverged = run.result.run_id;
      run.result.status = "diverged";
      run.result.test.reset();
      run.result.valid.reset();
    }
    if (run.result.grammar_seed == 3) missing.push_back(unfinished(run));
    return run.result.grammar_seed >= 3;
  });
  const std::string begun = missing.at(0).name;
  const Rows rows = make_rows(runs, Axes{}, {}, missing);
  const auto one = judged(rows, "gates").comparisons[0];
  EXPECT_EQ(one.figures.missing,
            (std::vector<std::string>{"DeltaNet (task 1) on grammar seed 4",
                                      "DeltaNet (task 1) on grammar seed 3, there and not finished (" + begun + ")"}))
      << "a diverged run is not missing";
  ASSERT_EQ(one.figures.lost.size(), 2U);
  const std::string text = text_of(rows, "gates");
  EXPECT_TRUE(
      has(text, "1 run of this claim is diverged and excluded from means: " + diverged + " (delta_net, task 1, seed 2)",
          "1 run of this claim is not finished and excluded from means: " + begun + " (delta_net, task 1, "));
  const auto json =
      verdict_json({"test", "", "", "", {}}, {judge(rows, shipped_claims(), *shipped_claims().find("gates"))}, rows);
  EXPECT_EQ(json["claims"][0]["scales"][0]["without_figure"].size(), 2U);
  // Runs of other claims are none of it.
  EXPECT_TRUE(judged(rows, "attention_falls_to_chance").comparisons[0].figures.lost.empty());
}

TEST(RunsWithoutAccuracy, AreNamedIfNoRunIsFinished) {
  std::vector<MissingRun> missing;
  for (const auto& run : table_runs(as_in_the_paper, "[1, 2, 3, 4, 5]")) missing.push_back(unfinished(run));
  const Rows rows = make_rows({}, Axes{}, {}, missing);
  const std::string text = text_of(rows, "gates");
  EXPECT_TRUE(has(text, "UNDECIDED: no finished runs of it at any scale",
                  "35 runs of this claim are not finished and excluded from means: ", "; and 25 more\n",
                  "not finished: 102 more, 105 in all"));
  const auto one = judged(rows, "gates").comparisons[0];
  EXPECT_EQ(one.decides,
            (std::vector<std::string>{
                "Gated DeltaNet on task 1 at scale small, corrected protocol, of which 5 are begun and not finished",
                "DeltaNet on task 1 at scale small, corrected protocol, of which 5 are begun and not finished"}));
}

// Takes one of the Transformer's runs of task 2 away.
TableRun take_transformer(std::vector<TableRun>& runs) {
  const auto it = std::find_if(runs.begin(), runs.end(), [](const TableRun& run) {
    return run.result.model == "transformer" && run.result.task == 2;
  });
  const TableRun out = *it;
  runs.erase(it);
  return out;
}

TEST(RunsWithoutAccuracy, BelongToScaleOfTheirNetwork) {
  auto runs = table_runs(as_in_the_paper);
  const TableRun taken = take_transformer(runs);
  const Rows rows = make_rows(runs, Axes{}, {}, {unfinished(taken)});
  EXPECT_EQ(judged(rows, "attention_falls_to_chance", "small").comparisons.back().figures.lost.size(), 1U);
  EXPECT_TRUE(judged(rows, "attention_falls_to_chance", "paper").comparisons.back().figures.lost.empty())
      << "others of its network have 4.7 M parameters";
}

TEST(RunsWithoutAccuracy, WithQuirkSwitchDoNotBelongToPlainModel) {
  auto runs = table_runs(as_in_the_paper);
  MissingRun quirky = unfinished(take_transformer(runs));
  quirky.config["model.switch double_residual"] = "\"on\"";
  const Rows rows = make_rows(runs, Axes{}, {}, {quirky});
  EXPECT_TRUE(judged(rows, "attention_falls_to_chance", "small").comparisons.back().figures.lost.empty());
}

TEST(RunsWithoutAccuracy, AreIgnoredIfAnotherCopyIsFinished) {
  const auto runs = table_runs(as_in_the_paper);
  const Rows rows = make_rows(runs, Axes{}, {}, {unfinished(runs.front())});
  EXPECT_TRUE(rows.absent.empty());
  EXPECT_TRUE(rows.missing.empty());
}

TEST(Comparison, NamesRunsNotTestedAtItsGaps) {
  auto runs = small_runs(
      "[task]\nnumber = 2\n[eval]\ngaps = [10, 20, 50, 100]\n[grid]\nmodel.name = "
      "[\"gated_delta_net\", \"gla\"]\nrun.seed = [1, 2, 3]\n");
  for (auto& run : runs)
    if (run.result.model == "gla" && run.result.grammar_seed == 2) run.result.grid.pop_back();
  size_t compared = 0;
  for (const auto& one : judged(rows_from(runs), "mixing_generalises").comparisons) {
    if (one.comparison->a.front().model != "gated_delta_net" || one.comparison->b.front().model != "gla") continue;
    ++compared;
    EXPECT_EQ(
        one.figures.missing,
        std::vector<std::string>{"GLA (task 4) on grammar seed 2: `eval RUN --save` with gaps of 20, 50, 100 frames"});
  }
  EXPECT_EQ(compared, 2U);  // accuracy and retention
}

TEST(Comparison, UsesLearningRateWithBestValidAccuracy) {
  const auto runs = small_runs(
      "[grid]\ntask.number = [1]\nmodel.name = [\"delta_net\", \"gated_delta_net\"]\nrun.seed = [1, 2, 3]\ntrain.lr = "
      "[1e-3, 2e-3]\n",
      [](Result& r) {
        const bool first = r.lr < 1.5e-3;
        r.test->accuracy = (r.model == "delta_net" ? .5 : first ? .8 : .9) + wobble(r);  // test likes the second
        r.valid->accuracy = first ? .7 : .6;                                             // valid the first
      });
  const auto one = judged(rows_from(runs), "gates").comparisons[0];
  EXPECT_NEAR(one.effect.mean, .3, .01);
  EXPECT_TRUE(one.figures.a.swept);
}

TEST(AboveCeiling, FindsRunsBeyondTheirUpperBound) {
  auto runs = table_runs(as_in_the_paper, "[1]");
  EXPECT_TRUE(above_ceiling(rows_from(runs)).empty());
  runs[0].result.test->accuracy = .99 + 4.1 * std::hypot(.001, .001);
  runs[0].result.test->ceiling->upper_bound = .992;
  EXPECT_TRUE(above_ceiling(rows_from(runs)).empty()) << "a causal model may lie there";
  runs[0].result.test->ceiling->upper_bound = .99;
  const auto wrong = above_ceiling(rows_from(runs));
  ASSERT_EQ(wrong.size(), 1U);
  EXPECT_TRUE(has(wrong[0], runs[0].result.run_id));
  runs[0].result.test->samples = 1;
  EXPECT_TRUE(above_ceiling(rows_from(runs)).empty()) << "one sample has no spread to be beyond";
  runs[0].result.test->samples = 100;
  runs[0].result.test->accuracy = .99 + 3.9 * std::hypot(.001, .001);
  EXPECT_TRUE(above_ceiling(rows_from(runs)).empty());
}

TEST(VerdictText, AgreesWithJson) {
  const Rows rows = rows_from(table_runs([](const Result& r) { return r.model == "transformer" ? .9 : .5; }));
  const Claims& claims = shipped_claims();
  const Experiment experiment{"main_table", "", "Main table", "Which is best?", {"attention_leads"}};
  const std::vector<ClaimVerdict> verdicts = {judge(rows, claims, *claims.find("attention_leads"))};
  const std::string text = verdict_text(experiment, verdicts, rows);
  EXPECT_TRUE(has(text, "small, corrected: SUPPORTED", "4 grammars, 1 seed each"));
  const auto json = nlohmann::json::parse(json_document(verdict_json(experiment, verdicts, rows), 6));
  const auto& one = json["claims"][0]["scales"][0];
  EXPECT_EQ(one["verdict"], "supported");
  EXPECT_EQ(one["protocol"], "corrected");
  EXPECT_EQ(one["supported"], 12);
  EXPECT_EQ(one["comparisons"][0]["grammars"], 4);
  EXPECT_GT(one["comparisons"][0]["interval_95"][0].get<double>(), .01);
  EXPECT_EQ(json["diverged"], 0);
}

}  // namespace
}  // namespace sb::test
