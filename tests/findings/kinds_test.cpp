// Verdicts on kinds of tasks other than gaps.
#include <gtest/gtest.h>

#include "base/format.h"
#include "findings/page.h"
#include "suites/experiment.h"
#include "worlds.h"

namespace sb::test {
namespace {

using ParityAccuracy = std::function<double(const Result&, bool negative)>;

// Parity at lengths 40 to 256, with three seeds on each of three sets of samples.
std::vector<TableRun> parity_runs(const ParityAccuracy& accuracy, const std::string& task = "length = 40\n",
                                  const std::string& grammars = "[1, 2, 3]", const std::string& seeds = "[1, 2, 3]") {
  return runs_of(suite_of("[task]\nkind = 'word_problem'\nmachine = 'parity'\nasked_from = 40\n" + task +
                          "[model]\nlayers = 1\nresidual = 'pre'\n[eval]\nlengths = [64, 256]\n"
                          "[grid]\nmodel.name = ['delta_net']\nmodel.negative_eigenvalues = [true, false]\n"
                          "grammar.seed = " +
                          grammars + "\ntrain.seed = " + seeds + "\n"),
                 [&](Result& r) {
                   const bool negative = plain_value(r.config.at("model.switch negative_eigenvalues")) == "true";
                   set_accuracy(r, negative ? .98 : .6);
                   for (auto& m : r.grid) m.accuracy = *m.at == 64 ? .8 : accuracy(r, negative) + wobble(r);
                 });
}

std::vector<TableRun> joined_runs(std::vector<TableRun> a, const std::vector<TableRun>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

double as_published(const Result& r, bool negative) {
  return negative ? (r.train_seed == 2 ? .98 : .7) : .51;
}

TEST(KindClaims, CompareBestRunsAtAPointOfTheTestAxis) {
  const Rows rows = rows_from(parity_runs(as_published));
  const ScaleVerdict v = judged(rows, "negative_eigenvalues", "quick");
  EXPECT_EQ(v.verdict, Verdict::supported) << v.words();
  ASSERT_EQ(v.comparisons.size(), 3U);
  EXPECT_NEAR(v.comparisons[0].a->mean, .98, .01);
  EXPECT_NEAR(v.comparisons[0].b->mean, .51, .01);
  EXPECT_EQ(v.comparisons[0].effect.n, 3U);
  EXPECT_EQ(v.comparisons[0].comparison->name(),
            "word problem, machine parity, length 256, best of 3 runs: DeltaNet, negative_eigenvalues on − DeltaNet");
  EXPECT_EQ(judged(rows_from(parity_runs([](const Result&, bool negative) { return negative ? .7 : .5; })),
                   "negative_eigenvalues", "quick")
                .verdict,
            Verdict::contradicted)
      << "no seed reaches .95";
  // Neither other machines and scales nor the paper's tasks count these runs.
  EXPECT_FALSE(judged(rows, "negative_eigenvalues", "small").tested);
  EXPECT_FALSE(judged(rows, "gates", "quick").tested);
  const ScaleVerdict other = judged(rows, "state_tracking", "quick");
  EXPECT_FALSE(other.tested);
  EXPECT_EQ(
      other.comparisons[0].decides,
      (std::vector<std::string>{"GRU on word problem, machine a5, length 64 at scale quick, corrected protocol",
                                "Mamba2 on word problem, machine a5, length 64 at scale quick, corrected protocol"}));
}

TEST(KindClaims, AreUntunedUnlessRatesWereSwept) {
  const auto marks = [](const std::string& rates, size_t lost = 0) {
    auto runs = parity_runs(as_published, "length = 40\n", "[1, 2, 3]", "[1, 2, 3]\ntrain.lr = " + rates);
    for (auto& run : runs) run.result.params = 4'700'000;
    std::erase_if(runs, [&](const TableRun& run) { return run.result.lr > 1.5e-3 && run.result.grammar_seed <= lost; });
    const ScaleVerdict v = judged(rows_from(runs), "negative_eigenvalues", "small");
    EXPECT_TRUE(v.tested);
    return v.marks();
  };
  EXPECT_EQ(marks("[1e-3]"), "untuned");
  EXPECT_EQ(marks("[1e-3, 2e-3]"), "");
  EXPECT_EQ(marks("[1e-3, 2e-3]", 1), "untuned") << "the second rate lacks a grammar";
  EXPECT_EQ(judged(rows_from(parity_runs(as_published)), "negative_eigenvalues", "quick").marks(),
            "exploratory, untuned");
  EXPECT_EQ(judged(rows_from(table_runs(as_in_the_paper)), "gates").marks(), "");
}

TEST(KindClaims, NeedAnAllowanceIfUntuned) {
  const auto words = [](double better) {
    auto runs = runs_of(suite_of("[task]\nkind = 'pcfg'\n[model]\nlayers = 2\n[eval]\nlengths = [50, 100]\n[grid]\n"
                                 "model.name = ['gated_delta_net', 'delta_net']\nrun.seed = [1, 2, 3]\n"),
                        [&](Result& r) {
                          set_accuracy(r, (r.model == "delta_net" ? .9 - better : .9) + wobble(r));
                          for (auto& m : r.grid) m.accuracy = r.test->accuracy;
                        });
    for (auto& run : runs) run.result.params = 84'000;
    return judged(rows_from(runs), "pcfg_gates", "quick").comparisons[0].words();
  };
  EXPECT_EQ(words(.03), "undecided (supported as run; learning rates not chosen)");
  EXPECT_EQ(words(.3), "supported");
}

TEST(OneSidedRuns, NameTheModelWithoutRuns) {
  const Claims& claims = shipped_claims();
  const Rows rows = rows_from(table_runs(as_in_the_paper, "[1, 2, 3]", R"(["delta_net"])"));
  const auto told = [&](const std::string& claim, const std::string& scale) {
    return verdict_text({}, {judge(rows, claims, *claims.find(claim), scale)}, rows);
  };
  for (const std::string scale : {"", "small"}) {
    const std::string text = told("gates", scale);
    EXPECT_NE(
        text.find("  UNDECIDED: no runs of some of its models at " + (scale.empty() ? "any scale" : "scale " + scale) +
                  "\n    missing: Gated DeltaNet on task 1 at scale small, corrected protocol\n"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("  undecided (no runs of some of its models)\n"), std::string::npos) << text;
    for (const char* model : {"missing: DeltaNet", "missing: GLA"})
      EXPECT_EQ(text.find(model), std::string::npos) << text;
  }
  EXPECT_NE(told("gates", "paper").find("  UNDECIDED: no runs of it at scale paper\n"), std::string::npos);
}

TEST(KindClaims, IgnoreRunsTrainedInAnotherWay) {
  const auto own = parity_runs(as_published);
  const auto perfect = [](const Result&, bool) { return .99; };
  const std::string more = "[1, 2, 3, 4, 5]";
  for (const char* task : {"length = 80\n", "unseen = 0.1\n", "start = 'hidden'\n",
                           "reveal = 0.1\n[train]\nschedule = {task.reveal = {from = 0.5, over = 0.8}}\n"}) {
    const Rows rows = rows_from(joined_runs(own, parity_runs(perfect, task, more)));
    const ScaleVerdict v = judged(rows, "negative_eigenvalues", "quick");
    EXPECT_EQ(v.verdict, Verdict::supported) << task;
    EXPECT_EQ(v.comparisons[0].effect.n, 3U) << task;
    EXPECT_NEAR(v.comparisons[0].b->mean, .51, .01) << task;
    EXPECT_FALSE(judged(rows_from(parity_runs(perfect, task, more)), "negative_eigenvalues", "quick").tested) << task;
  }
}

// A key that was added to a kind after a run was made has its default there.
TEST(KindClaims, TakeDefaultsOfKeysThatOlderRunsLack) {
  auto runs = parity_runs(as_published);
  for (auto& run : runs) ASSERT_EQ(run.result.config.erase("task.unseen"), 1U);
  EXPECT_EQ(judged(rows_from(runs), "negative_eigenvalues", "quick").verdict, Verdict::supported);
}

TEST(KindClaims, BestNeedsThePromisedNumberOfSeeds) {
  auto runs = parity_runs(as_published);
  std::erase_if(runs, [](const TableRun& run) {
    return run.result.grammar_seed == 3 && run.result.train_seed == 1 &&
           plain_value(run.result.config.at("model.switch negative_eigenvalues")) == "false";
  });
  const ScaleVerdict v = judged(rows_from(runs), "negative_eigenvalues", "quick");
  EXPECT_EQ(v.comparisons[0].effect.n, 2U);
  EXPECT_EQ(v.comparisons[0].words(), "undecided (two seeds)");
  EXPECT_EQ(v.comparisons[0].figures.missing,
            std::vector<std::string>{"DeltaNet (word_problem) on grammar seed 3: 2 of 3 seeds"});
  EXPECT_EQ(v.comparisons[1].verdict, Verdict::supported) << "its arm has all seeds";
  // No grammar has enough.
  const ScaleVerdict none =
      judged(rows_from(parity_runs(as_published, "", "[1, 2, 3]", "[1, 2]")), "negative_eigenvalues", "quick");
  EXPECT_EQ(none.comparisons[2].effect.n, 0U);
  EXPECT_EQ(none.comparisons[2].figures.missing,
            std::vector<std::string>{"DeltaNet (word_problem) on grammar seeds 1, 2, 3: 2 of 3 seeds"});
}

TEST(KindClaims, BestIgnoresSeedsBeyondThePromisedNumber) {
  const auto lucky = [](const Result& r, bool negative) { return negative ? (r.train_seed == 5 ? .99 : .7) : .51; };
  const ScaleVerdict v =
      judged(rows_from(parity_runs(lucky, "", "[1, 2, 3]", "[1, 2, 3, 4, 5]")), "negative_eigenvalues", "quick");
  EXPECT_NEAR(v.comparisons[0].a->mean, .7, .01);
  EXPECT_EQ(v.comparisons[1].verdict, Verdict::contradicted) << "the fifth seed was not promised";
}

// Test points separate runs only if a comparison measures at them.
TEST(KindClaims, PointsMatterOnlyWhereTheyAreMeasured) {
  const auto runs = [](const char* model, const char* depths) {
    return runs_of(suite_of(formatted("[task]\nkind = 'dyck'\nlength = 50\ntest_length = 100\n[model]\nlayers = 2\n"
                                      "[eval]\ndepths = {}\n[grid]\nmodel.name = ['{}']\ngrammar.seed = [1, 2, 3]\n",
                                      depths, model)),
                   [](Result& r) { r.params = 84'000; });
  };
  const ScaleVerdict v = judged(rows_from(joined_runs(runs("gated_delta_net", "[4, 8, 12]"), runs("mamba2", "[4]"))),
                                "dyck_mixing", "quick");
  for (const auto& one : v.comparisons) {
    if (one.comparison->b.front().model != "mamba2") continue;
    EXPECT_EQ(one.effect.n, one.comparison->gaps.empty() ? 3U : 0U) << one.comparison->name();
  }
}

// Every comparison of a claim finds the runs of its experiment, at every scale.
TEST(KindClaims, FindTheRunsOfTheirExperiments) {
  const std::map<std::string, int64_t> sizes = {{"quick", 84'000}, {"small", 4'700'000}, {"paper", 85'000'000}};
  ModelRules with = rules();
  with.shipped = SB_SOURCE_DIR "/configs";
  size_t tested = 0;
  for (const auto& experiment : read_catalogue(SB_SOURCE_DIR "/configs"))
    for (const auto& scale : experiment_scales()) {
      const Suite suite = experiment_suite(experiment, {scale, false}, {}, with);
      const std::string& kind = suite.runs.front().values.task.kind;
      if (kind == kGapsKind) continue;
      const bool squared = find_task(kind).loss == Loss::squared_error;
      const Rows rows = rows_from(runs_of(suite, [&](Result& r) {
        r.params = sizes.at(scale);
        const auto set = [](Measurement& m) {
          m.mse = .11;
          m.ceiling->mse = .1;
        };
        if (squared) set(*r.test);
        for (auto& m : r.grid)
          if (squared) set(m);
      }));
      for (const auto& id : experiment.claims)
        for (const auto& one : judged(rows, id, scale).comparisons) {
          if (one.comparison->reported || !one.comparison->with.empty()) continue;
          EXPECT_EQ(one.effect.n, 3U) << experiment.name << " at " << scale << ": " << one.comparison->name();
          ++tested;
        }
    }
  EXPECT_GT(tested, 60U);
}

std::string claims_text(const std::string& comparison) {
  return "[[scale]]\nname = 's'\n[[claim]]\nid = 'c'\ntitle = 't'\nsentence = 'x'\ncomparisons = [" + comparison + "]";
}

ComparisonVerdict judged_alone(const Rows& rows, const std::string& comparison) {
  const Claims claims = parse_claims(claims_text(comparison), "c.toml");
  ComparisonVerdict out =
      judge(rows, claims, claims.claims.front(), claims.scales.front(), corrected_protocol).comparisons.front();
  out.comparison = nullptr;
  return out;
}

TEST(ExcessError, IsSquaredErrorRelativeToTheBound) {
  const Rows rows = rows_from(
      runs_of(suite_of("[task]\nkind = 'tracking'\n[eval]\nmissing = [60]\n[grid]\nmodel.name = ['mamba2', 'gla']\n"
                       "grammar.seed = [1, 2, 3]\n"),
              [](Result& r) {
                const double own = r.model == "mamba2" ? 1.1 : 1.3;
                const auto set = [&](Measurement& m, double least) {
                  m.mse = least * (own + wobble(r));
                  m.ceiling->mse = least;
                };
                set(*r.test, .2);
                for (auto& m : r.grid) set(m, .4);
              }));
  const auto test = judged_alone(rows,
                                 "{statistic = 'excess_error', asks = 'below', a = 'mamba2', b = 'gla', "
                                 "task = 'tracking'}");
  EXPECT_NEAR(test.effect.mean, -.2, .01);
  EXPECT_EQ(test.verdict, Verdict::supported);
  const auto far = judged_alone(rows,
                                "{statistic = 'excess_error', asks = 'at_most', reference = 0.2, a = 'mamba2', "
                                "task = 'tracking', at = [60]}");
  EXPECT_NEAR(far.effect.mean, .1, .01);
  EXPECT_EQ(far.verdict, Verdict::supported);
}

TEST(ExcessRatio, IsOfTwoExcessErrors) {
  const auto world = [](double least) {
    return rows_from(runs_of(
        suite_of("[task]\nkind = 'tracking'\n[grid]\nmodel.name = ['mamba2', 'gla']\ngrammar.seed = [1, 2, 3]\n"),
        [&](Result& r) {
          r.test->mse = least * ((r.model == "mamba2" ? 1.02 : 1.05) + wobble(r) / 20);
          r.test->ceiling->mse = least;
        }));
  };
  const std::string ratio =
      "{statistic = 'excess_ratio', asks = 'below', delta = 0.2, a = 'mamba2', b = 'gla', task = 'tracking'}";
  for (const double least : {.1, 10.}) {
    const auto v = judged_alone(world(least), ratio);
    EXPECT_NEAR(v.effect.mean, std::log(.02 / .05), .02);
    EXPECT_EQ(v.verdict, Verdict::supported);
    Comparison shown;
    shown.statistic = Statistic::excess_ratio;
    EXPECT_EQ(effect_text(shown, std::log(.4)), "−60.0");
  }
}

TEST(Drop, IsFromOnePointOfTheTestAxisToOthers) {
  const Rows rows = rows_from(
      runs_of(suite_of("[task]\nkind = 'dyck'\n[eval]\ndepths = [4, 8, 12]\n[grid]\nmodel.name = ['mamba2', 'gla']\n"
                       "grammar.seed = [1, 2, 3]\n"),
              [](Result& r) {
                set_accuracy(r, .97);
                for (auto& m : r.grid)
                  m.accuracy = .9 + wobble(r) - (r.model == "gla" ? .2 : .1) * (*m.at == 4 ? 0 : *m.at == 8 ? .5 : 1);
              }));
  const auto v = judged_alone(rows,
                              "{statistic = 'drop', asks = 'below', a = 'mamba2', b = 'gla', task = 'dyck', from = 4, "
                              "at = [8, 12]}");
  EXPECT_NEAR(v.a->mean, .075, 1e-9) << "grammars and runs move all points alike";
  EXPECT_NEAR(v.b->mean, .15, 1e-9);
  EXPECT_EQ(v.verdict, Verdict::supported);
  EXPECT_EQ(
      parse_claims(claims_text("{statistic = 'drop', a = 'mamba2', b = 'gla', task = 'dyck', from = 4, at = [8, 12]}"),
                   "c.toml")
          .claims.front()
          .comparisons.front()
          .name(),
      "dyck, depth 4 to 8, 12, drop: Mamba2 − GLA");
}

// Mamba2 keeps the bit, the Transformer loses it; `own` is the Transformer's accuracy on its own test on seed 2.
Rows flip_flops(double own, double error = .005) {
  return rows_from(runs_of(suite_of("[task]\nkind = 'flip_flop'\n[eval]\nignored = [98]\n[grid]\n"
                                    "model.name = ['mamba2', 'transformer']\ngrammar.seed = [1, 2, 3]\n"),
                           [&](Result& r) {
                             const bool good = r.model == "mamba2";
                             r.chance = .5;
                             r.test->stderr_ = error;
                             r.test->ceiling->accuracy = 1;
                             set_accuracy(r, good || r.grammar_seed != 2 ? .999 : own);
                             for (auto& m : r.grid) m.accuracy = (good ? .99 : .7) + wobble(r);
                           }));
}

TEST(TrainedModels, VerdictNeedsBothOnTheirOwnTest) {
  const auto words = [](double own, const std::string& more) {
    const std::string text = claims_text("{a = 'mamba2', b = 'transformer', task = 'flip_flop'" + more + "}");
    const Claims claims = parse_claims(text, "c.toml");
    return judge(flip_flops(own), claims, claims.claims.front(), claims.scales.front(), corrected_protocol)
        .comparisons.front()
        .words();
  };
  const std::string at = ", at = [98]";
  const std::string untrained = "undecided (Transformer not trained: .710 on its own test, ceiling 1.000)";
  EXPECT_EQ(words(.95, at), "supported");
  EXPECT_EQ(words(.91, at), "supported");
  EXPECT_EQ(words(.71, at), untrained) << "one seed of three is enough";
  EXPECT_EQ(words(.71, at + ", in_distribution = 0.3"),
            "supported (Transformer not trained: .710 on its own test, ceiling 1.000)");
  EXPECT_EQ(words(.95, at + ", in_distribution = 0.02"),
            "undecided (Transformer not trained: .950 on its own test, ceiling 1.000)");
  // Where accuracies on the own test are compared, only chance counts unless the comparison says more.
  EXPECT_NE(words(.71, ""), untrained);
  EXPECT_EQ(words(.71, ", in_distribution = 0.1"), untrained);
  for (const std::string& more : {at + ", in_distribution = 1", std::string()})
    EXPECT_EQ(words(.519, more), "undecided (Transformer not trained: .519 on its own test, chance .500)") << more;
  EXPECT_NE(words(.521, "").find("undecided"), std::string::npos);
  EXPECT_EQ(words(.521, "").find("not trained"), std::string::npos);
}

TEST(TrainedModels, UntrainedOnesAreNamedAsWhatWouldDecide) {
  const auto v = judged_alone(flip_flops(.71), "{a = 'mamba2', b = 'transformer', task = 'flip_flop', at = [98]}");
  EXPECT_EQ(v.decides,
            std::vector<std::string>{"longer training or other settings of Transformer, until it learns its own test"});
}

TEST(TrainedModels, ArmsThatTheClaimCallsIncapableNeedNotBe) {
  const std::string at = "task = 'flip_flop', at = [98]";
  const auto first = [&](const std::string& rows) {
    const Claims claims = parse_claims(claims_text(rows), "c.toml");
    return judge(flip_flops(.5), claims, claims.claims.front(), claims.scales.front(), corrected_protocol)
        .comparisons.front();
  };
  const std::string pair = "{a = 'mamba2', b = 'transformer', " + at + "}";
  const auto alone = [&](const char* asks, const char* model) {
    return std::string("{asks = '") + asks + "', reference = 0.8, a = '" + model + "', " + at + "}";
  };
  EXPECT_EQ(first(pair).verdict, Verdict::undecided);
  EXPECT_EQ(first(pair + ", " + alone("at_most", "transformer")).verdict, Verdict::supported);
  EXPECT_EQ(first(alone("at_most", "transformer")).verdict, Verdict::supported);
  EXPECT_EQ(first(pair + ", " + alone("at_least", "transformer")).verdict, Verdict::undecided);
  EXPECT_EQ(first(pair + ", " + alone("at_most", "mamba2")).verdict, Verdict::undecided);
  EXPECT_TRUE(
      has(first(pair + ", " + alone("at_most", "transformer")).words(), "supported (Transformer not trained: "));
}

TEST(TrainedModels, SquaredErrorsAreAtMostTwiceTheLeast) {
  const auto world = [](double own) {
    return rows_from(runs_of(suite_of("[task]\nkind = 'tracking'\n[grid]\nmodel.name = ['mamba2', 's4']\n"
                                      "grammar.seed = [1, 2, 3]\n"),
                             [&](Result& r) {
                               r.test->mse = (r.model == "s4" ? own : .11) + wobble(r) / 100;
                               r.test->ceiling->mse = .1;
                             }));
  };
  const std::string row = "{statistic = 'excess_error', asks = 'below', a = 'mamba2', b = 's4', task = 'tracking'";
  EXPECT_EQ(judged_alone(world(.19), row + "}").verdict, Verdict::supported);
  const auto v = judged_alone(world(.3), row + "}");
  EXPECT_EQ(v.verdict, Verdict::undecided);
  EXPECT_EQ(v.withheld.find("S4 not trained: squared error .30"), 0U) << v.withheld;
  EXPECT_EQ(judged_alone(world(.3), row + ", in_distribution = 3}").verdict, Verdict::supported);
}

// A text has no ceiling.
TEST(TrainedModels, NgramReplacesAnUnknownCeiling) {
  const auto world = [](double own) {
    auto runs = runs_of(suite_of("[task]\nkind = 'flip_flop'\n[eval]\nignored = [98]\n[grid]\n"
                                 "model.name = ['mamba2', 'gla']\ngrammar.seed = [1, 2, 3]\n"),
                        [&](Result& r) {
                          set_accuracy(r, r.model == "gla" ? own : .5);
                          r.test->ceiling.reset();
                          r.baselines = BaselineFigures{.009, {}, {.06, .4}, 2, .01, 1000, 50};
                          for (auto& m : r.grid)
                            m.accuracy = r.test->accuracy * (r.model == "gla" ? .5 : .9) + wobble(r);
                        });
    return rows_from(std::move(runs));
  };
  const std::string row = "{statistic = 'retention', a = 'mamba2', b = 'gla', task = 'flip_flop', at = [98]}";
  EXPECT_EQ(judged_alone(world(.41), row).verdict, Verdict::supported);
  EXPECT_EQ(judged_alone(world(.39), row).withheld, "GLA not trained: .390 on its own test, n-gram .400");
}

TEST(TrainedModels, GapLengthsNeedTheNgramInClaimsBeyondThePaper) {
  const auto words = [](double own, int number) {
    const Rows rows = rows_from(small_runs(
        "[task]\nnumber = 2\n[eval]\ngaps = [20]\n[grid]\nmodel.name = ['mamba2', 'gla']\nrun.seed = [1, 2, 3]\n",
        [&](Result& r) {
          set_accuracy(r, r.model == "gla" ? own : .8);
          r.baselines = BaselineFigures{.009, {}, {.06, .7}, 2, .01, 1000, 50};
          for (auto& m : r.grid) m.accuracy = (r.model == "gla" ? .3 : .6) + wobble(r);
        }));
    std::string text = claims_text("{statistic = 'gap_accuracy', a = 'mamba2', b = 'gla', task = 4, gaps = [20]}");
    text.replace(text.find("title"), 0, formatted("number = {}\n", number));
    const Claims claims = parse_claims(text, "c.toml");
    return judge(rows, claims, claims.claims.front(), claims.scales.front(), corrected_protocol)
        .comparisons.front()
        .words();
  };
  EXPECT_EQ(words(.71, 0), "supported");
  EXPECT_EQ(words(.69, 0), "undecided (GLA not trained on grammar 1: .690 on its own test, n-gram .700)");
  EXPECT_EQ(words(.69, 5), "supported");
}

TEST(TrainedModels, BothArmsAreNamed) {
  const Rows rows = rows_from(small_runs(
      "[task]\nnumber = 2\n[eval]\ngaps = [20]\n[grid]\nmodel.name = ['mamba2', 'gla']\nrun.seed = [1, 2, 3]\n",
      [&](Result& r) {
        set_accuracy(r, r.model == "gla" ? .5 : .6);
        r.baselines = BaselineFigures{.009, {}, {.06, .7}, 2, .01, 1000, 50};
        for (auto& m : r.grid) m.accuracy = r.test->accuracy / 2 + wobble(r);
      }));
  const auto one = judged_alone(rows, "{statistic = 'gap_accuracy', a = 'mamba2', b = 'gla', task = 4, gaps = [20]}");
  EXPECT_EQ(one.withheld,
            "Mamba2 not trained on grammar 1: .600 on its own test, n-gram .700; GLA not trained on grammar 1: .500 on "
            "its own test, n-gram .700");
  EXPECT_EQ(one.decides, std::vector<std::string>{"longer training or other settings of Mamba2 and GLA, until they "
                                                  "learn their own test"});
}

TEST(TrainedModels, PapersTasksHaveNoSuchRule) {
  const Rows rows = rows_from(table_runs([](const Result& r) { return r.model == "gla" ? .01 : .9; }));
  EXPECT_EQ(judged_alone(rows, "{a = 'mamba2', b = 'gla', task = 1}").verdict, Verdict::supported);
  EXPECT_THROW(parse_claims(claims_text("{a = 'mamba2', b = 'gla', task = 1, in_distribution = 0.1}"), "c.toml"),
               Error);
}

TEST(Units, AreSeedsOnKindsWithoutGrammars) {
  const auto evidence = [](const Rows& rows, const std::string& comparison) {
    const Claims claims = parse_claims(claims_text(comparison), "c.toml");
    const ScaleVerdict v = judge(rows, claims, claims.claims.front(), claims.scales.front(), corrected_protocol);
    return evidence_text(v.comparisons.front()) + "; " + v.words();
  };
  const auto runs = [](const std::string& kind, const std::string& seeds) {
    return rows_from(runs_of(suite_of("[task]\nkind = '" + kind + "'\n[grid]\nmodel.name = ['gru', 'gla']\n" + seeds),
                             [](Result& r) { set_accuracy(r, (r.model == "gru" ? .9 : .5) + wobble(r)); }));
  };
  const auto pair = [](const std::string& kind) { return "{a = 'gru', b = 'gla', task = '" + kind + "'}"; };
  EXPECT_EQ(evidence(runs("recall", "run.seed = [1, 2, 3]\n"), pair("recall")),
            "3 seeds, learning rate 0.001; supported");
  EXPECT_EQ(evidence(runs("recall", "run.seed = [1]\n"), pair("recall")),
            "1 seed, learning rate 0.001; undecided on one seed");
  EXPECT_EQ(evidence(runs("recall", "grammar.seed = [1, 2, 3]\ntrain.seed = [1, 2]\n"), pair("recall")),
            "3 seeds, 2 runs each, learning rate 0.001; supported");
  EXPECT_EQ(evidence(runs("pcfg", "run.seed = [1, 2, 3]\n"), pair("pcfg")),
            "3 grammars, 1 seed each, learning rate 0.001; supported");
}

TEST(TaskOrder, IsRankCorrelationWithAnotherTask) {
  const auto world = [](double sign) {
    auto runs = runs_of(suite_of("[task]\nkind = 'flip_flop'\n[eval]\nignored = [98]\n[grid]\nmodel.name = " +
                                 std::string(seven) + "\ngrammar.seed = [1, 2]\n"),
                        [&](Result& r) {
                          set_accuracy(r, .98);
                          for (auto& m : r.grid) m.accuracy = .4 + sign * .02 * model_rank(r.model) + wobble(r) / 10;
                        });
    return rows_from(
        joined_runs(std::move(runs), table_runs([](const Result& r) { return .5 + .02 * model_rank(r.model); })));
  };
  const std::string comparison = "{statistic = 'task_order', a = {mean = " + std::string(seven) +
                                 "}, task = 1, with = {task = 'flip_flop', at = [98], statistic = 'retention'}}";
  const auto alike = judged_alone(world(1), comparison);
  EXPECT_EQ(alike.effect.n, 4U) << "grammars of the task";
  EXPECT_EQ(alike.effect.mean, 1);
  EXPECT_EQ(alike.verdict, Verdict::supported);
  EXPECT_EQ(judged_alone(world(-1), comparison).verdict, Verdict::contradicted);
  const auto without = judged_alone(rows_from(table_runs(as_in_the_paper)), comparison);
  EXPECT_EQ(without.effect.n, 0U);
  EXPECT_EQ(without.figures.missing.front(),
            "DeltaNet on flip flop, ignored 98, retention at scale s, corrected protocol");
}

}  // namespace
}  // namespace sb::test
