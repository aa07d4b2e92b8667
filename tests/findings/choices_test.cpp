// Choices on a grammar of their own, and the protocol of a run.
#include "findings/choices.h"
#include "findings/page.h"

#include <gtest/gtest.h>

#include "worlds.h"

namespace sb::test {
namespace {

// One model at two learning rates on the grammar of the choices, and on reported ones.
std::vector<TableRun> chosen_runs() {
  auto runs = small_runs(
      "[grid]\ntask.number = [1]\nmodel.name = [\"delta_net\", \"gated_delta_net\"]\nrun.seed = [11]\ntrain.lr = "
      "[1e-3, 2e-3]\n",
      [](Result& r) { set_accuracy(r, r.lr > 1.5e-3 ? .2 : .1); });
  const auto reported = small_runs(
      "[grid]\ntask.number = [1]\nmodel.name = [\"delta_net\", \"gated_delta_net\"]\nrun.seed = [1, 2, 3]\n"
      "train.lr = [2e-3]\n",
      [](Result& r) { set_accuracy(r, (r.model == "delta_net" ? .5 : .8) + wobble(r)); });
  runs.insert(runs.end(), reported.begin(), reported.end());
  return runs;
}

TEST(Choices, SelectBestValidAccuracyPerModel) {
  const auto choices = choices_of(rows_from(chosen_runs()), shipped_claims());
  ASSERT_EQ(choices.size(), 4U);
  EXPECT_EQ(choices[0].model, "delta_net");
  EXPECT_EQ(choices[3].model, "gated_delta_net");
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(choices[i].chosen, i % 2 == 1) << i;
    EXPECT_NEAR(*choices[i].valid, i % 2 == 1 ? .2 : .1, 1e-12);
  }
  EXPECT_TRUE(choices_of(rows_from({}), shipped_claims()).empty());
}

TEST(Choices, UseGrammarOutsideComparisons) {
  const auto one = judged(rows_from(chosen_runs()), "gates").comparisons[0];
  EXPECT_EQ(one.effect.n, 3U);
  EXPECT_NEAR(one.a->mean, .8, .01);
  EXPECT_TRUE(one.figures.missing.empty());
}

TEST(Choices, DoNotCountAsRunsOfClaim) {
  auto runs = chosen_runs();
  std::erase_if(runs, [](const TableRun& run) { return run.result.grammar_seed != 11; });
  EXPECT_FALSE(judged(rows_from(runs), "gates").tested);
}

TEST(Choices, ListEveryResidualAndConvolution) {
  std::vector<TableRun> runs;
  for (const char* residual : {"post", "pre"})
    for (auto& run : small_runs("[grid]\ntask.number = [1]\nmodel.name = [\"gla\"]\nrun.seed = [11]\n")) {
      run.result.config["model.residual"] = "\"" + std::string(residual) + "\"";
      run.result.run_id += residual;
      set_accuracy(run.result, std::string(residual) == "pre" ? .6 : .5);
      runs.push_back(std::move(run));
    }
  const auto choices = choices_of(rows_from(runs), shipped_claims());
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[0].variant.text(), "post");
  EXPECT_EQ(choices[1].variant.text(), "pre");
  EXPECT_TRUE(choices[1].chosen);
}

TEST(Choices, AreMadeOnTaskOneAndCheckedOnTaskThree) {
  auto runs =
      small_runs("[grid]\ntask.number = [1, 3]\nmodel.name = [\"gla\"]\nrun.seed = [11]\ntrain.lr = [1e-3, 2e-3]\n",
                 [](Result& r) { set_accuracy(r, (r.lr > 1.5e-3) == (r.task == 1) ? .4 : .3); });
  const auto rows = rows_from(runs);
  const auto best = [&](int task) {
    for (const auto& choice : choices_of(rows, shipped_claims(), task))
      if (choice.chosen) return choice.lr;
    return std::string();
  };
  EXPECT_EQ(best(1), "0.002");
  EXPECT_EQ(best(3), "0.001");
  const std::string page = findings_pages(rows, shipped_claims(), "results/").details;
  EXPECT_NE(page.find("| GLA | post | 0.002 | .4000 | chosen |"), std::string::npos) << page;
  EXPECT_NE(page.find("| GLA | post | 0.001 | .4000 | best |"), std::string::npos) << page;
}

// Mamba is 5 points above GLA on task 3; on the grammar of the choices GLA is best at the largest rate of task 1, and
// gains `gain` from a larger one on task 3.
// `used` is the rate of the compared runs, `beyond` what a rate of 8e-3 gains there.
ComparisonVerdict mamba_over_gla(std::optional<double> gain, const char* other_rate = "4e-3", double error = 0,
                                 const char* used = "2e-3", std::optional<double> beyond = {}) {
  const std::string grid = "[grid]\nmodel.name = [\"gla\", \"mamba\"]\n";
  auto runs =
      small_runs("[task]\nnumber = 3\n[train]\nlr = " + std::string(used) + "\n" + grid + "run.seed = [1, 2, 3, 4]\n",
                 [](Result& r) { set_accuracy(r, (r.model == "gla" ? .85 : .9) + wobble(r)); });
  const auto add = [&](const std::string& text, double at, double better) {
    for (auto& run : small_runs(text + grid + "run.seed = [11]\n",
                                [&](Result& r) { set_accuracy(r, .8 + (r.lr > at ? better : 0)); })) {
      run.result.valid->stderr_ = error;
      runs.push_back(std::move(run));
    }
  };
  add("[task]\nnumber = 1\n[train]\nlr = 1e-3\n", 1.5e-3, 0);
  add("[task]\nnumber = 1\n[train]\nlr = 2e-3\n", 1.5e-3, .01);
  if (gain) add("[task]\nnumber = 3\n[train]\nlr = 2e-3\n", 3e-3, 0);
  if (gain) add("[task]\nnumber = 3\n[train]\nlr = " + std::string(other_rate) + "\n", 3e-3, *gain);
  if (beyond) add("[task]\nnumber = 3\n[train]\nlr = 8e-3\n", 3e-3, *beyond);
  const auto rows = rows_from(runs);
  for (auto& one : judged(rows, "complementary_gating").comparisons)
    if (one.comparison->name() == "task 3: Mamba − GLA") return one;
  ADD_FAILURE() << "no claim compares Mamba and GLA";
  return {};
}

TEST(Choices, VerdictsHoldForOtherSettingsToo) {
  const ComparisonVerdict unknown = mamba_over_gla({});
  EXPECT_EQ(unknown.words(), "undecided (supported as run; settings of GLA open)");
  ASSERT_EQ(unknown.decides.size(), 1U);
  EXPECT_EQ(unknown.decides[0], "GLA with the settings that are best on tasks 1 and 3 of the choices' grammar");
  EXPECT_EQ(mamba_over_gla(-.01).words(), "supported") << "the larger rate is worse";
  EXPECT_EQ(mamba_over_gla(.01).words(), "supported") << "twice the gain leaves 3 points";
  EXPECT_EQ(mamba_over_gla(.01, "4e-3", .01).words(), "undecided (supported as run; settings of GLA open)")
      << "the gain may be larger";
  EXPECT_EQ(mamba_over_gla(.03).words(), "undecided (supported as run; settings of GLA open)");
  EXPECT_EQ(mamba_over_gla(0, "1e-3").words(), "undecided (supported as run; settings of GLA open)")
      << "no larger rate was tried";
}

TEST(Choices, CompareWithTheRateThatWasRun) {
  EXPECT_EQ(mamba_over_gla(.045, "4e-3", 0, "4e-3").words(), "undecided (supported as run; settings of GLA open)")
      << "a rate beyond the largest may give as much again";
  EXPECT_EQ(mamba_over_gla(.02, "4e-3", 0, "4e-3").words(), "supported") << "and leaves 3 points";
  EXPECT_EQ(mamba_over_gla(.045, "4e-3", 0, "4e-3", .01).words(), "supported") << "the rate beyond is worse";
  EXPECT_EQ(mamba_over_gla(.045, "4e-3", 0, "2e-3", .01).words(), "undecided (supported as run; settings of GLA open)")
      << "the runs do not use the best rate";
  EXPECT_EQ(mamba_over_gla(.045, "4e-3", 0, "4e-3", .09).words(), "undecided (supported as run; settings of GLA open)")
      << "nor here";
}

// GLA and RetNet on task 1, GLA this much better; settings were chosen at `small` for GLA, and for RetNet if
// `has_choices`.
ComparisonVerdict gla_over_retnet(double better, bool has_choices, const std::string& rate = "1e-3",
                                  const std::string& scale = "small", const std::string& seeds = "[1, 2, 3]") {
  auto runs =
      scale_runs(scale, scale == "small" ? 4'700'000 : 85'000'000,
                 "[train]\nlr = " + rate +
                     "\n[grid]\ntask.number = [1]\nmodel.name = [\"gla\", \"retnet\"]\nrun.seed = " + seeds + "\n",
                 [&](Result& r) { set_accuracy(r, (r.model == "gla" ? .8 + better : .8) + wobble(r)); });
  for (auto& run :
       small_runs("[grid]\ntask.number = [1]\nmodel.name = [\"gla\", \"retnet\"]\nrun.seed = [11]\ntrain.lr = "
                  "[5e-4, 1e-3, 2e-3]\n",
                  [](Result& r) { set_accuracy(r, r.lr == 1e-3 ? .9 : .8); }))
    if (has_choices || run.result.model == "gla") runs.push_back(std::move(run));
  const auto rows = rows_from(runs);
  for (auto& one : judged(rows, "gates", scale).comparisons)
    if (one.comparison->name() == "task 1: GLA − RetNet") return one;
  throw std::runtime_error("no such comparison");
}

TEST(Choices, AreUnknownForAModelThatHasNone) {
  EXPECT_EQ(gla_over_retnet(.1, true).words(), "supported");
  EXPECT_EQ(gla_over_retnet(.1, true, "5e-4").words(), "undecided (supported as run; settings of RetNet open)")
      << "the chosen rate is 10 points better";
  EXPECT_EQ(gla_over_retnet(.1, false).words(), "undecided (supported as run; settings of RetNet open)");
  EXPECT_EQ(gla_over_retnet(-.3, false).words(), "contradicted") << "a better RetNet is still better";
}

TEST(Choices, CountAtLargerScales) {
  EXPECT_EQ(gla_over_retnet(.1, true, "1e-3", "paper").words(), "supported");
  EXPECT_FALSE(gla_over_retnet(.1, true, "1e-3", "paper").untuned);
  EXPECT_EQ(gla_over_retnet(.1, false, "1e-3", "paper").words(),
            "undecided (supported as run; learning rates not chosen)");
  EXPECT_EQ(gla_over_retnet(-.3, false, "1e-3", "paper").words(), "contradicted");
}

TEST(Choices, AreAskedForBesideMoreGrammars) {
  const std::string grammars =
      "at least 1 more grammar on which all compared models are run, because a verdict needs three";
  const auto decides = [](double better, bool has_choices) {
    return gla_over_retnet(better, has_choices, "1e-3", "paper", "[1, 2]").decides;
  };
  EXPECT_EQ(decides(.1, true), std::vector{grammars});
  EXPECT_EQ(decides(.1, false),
            (std::vector<std::string>{"learning rates chosen on valid for every model (--sweep)", grammars}));
  EXPECT_EQ(decides(.3, false), std::vector{grammars}) << "no rate would change a difference of 30 points";
}

// DeltaNet in bf16 at 1e-3, and in mixed precision at these rates, where 2e-3 is 5 points better and 1e-3 was run on
// so many grammars.
ComparisonVerdict cost_of_bf16(const std::string& rates, int64_t grammars = 3) {
  const std::string grid = "[grid]\nmodel.name = [\"delta_net\"]\nrun.seed = [1, 2, 3]\n";
  auto runs = small_runs("[task]\nnumber = 3\n" + grid + "train.lr = " + rates + "\n",
                         [](Result& r) { set_accuracy(r, (r.lr > 1.5e-3 ? .85 : .8) + wobble(r)); });
  std::erase_if(runs, [&](const TableRun& run) {
    return run.result.lr < 1.5e-3 && static_cast<int64_t>(run.result.grammar_seed) > grammars;
  });
  for (auto& run : small_runs("[task]\nnumber = 3\n[train]\nlr = 1e-3\n[quirks]\ndelta_bf16 = true\n" + grid,
                              [](Result& r) { set_accuracy(r, .78 + wobble(r)); }))
    runs.push_back(std::move(run));
  const auto rows = rows_from(runs);
  for (auto& one : judged(rows, "bf16").comparisons)
    if (one.comparison->name().starts_with("task 3: DeltaNet")) return one;
  throw std::runtime_error("no such comparison");
}

TEST(Choices, VariantsOfAModelAreComparedAtRatesOfBoth) {
  const ComparisonVerdict shared = cost_of_bf16("[1e-3, 2e-3]");
  EXPECT_NEAR(shared.effect.mean, -.02, .005);
  EXPECT_EQ(shared.figures.unshared, std::set<std::string>{"train.lr 0.002, train.warmup 476"});
  EXPECT_FALSE(shared.figures.b.swept);
  EXPECT_NEAR(cost_of_bf16("[2e-3]").effect.mean, -.07, .005) << "no rate has both";
  const ComparisonVerdict partly = cost_of_bf16("[1e-3, 2e-3]", 1);
  EXPECT_NEAR(partly.effect.mean, -.07, .005) << "1e-3 was not run on all grammars";
  EXPECT_TRUE(partly.figures.unshared.empty());
  EXPECT_EQ(partly.withheld, "learning rates differ");
}

// GLA drops by 20 points from task 2 to 3, Mamba by 10, in runs of task 3 at each of these rates.
ComparisonVerdict drop_with(const std::vector<std::string>& rates) {
  const std::string grid = "[grid]\nmodel.name = [\"gla\", \"mamba\"]\nrun.seed = [1, 2, 3, 4]\n";
  auto runs =
      small_runs("[task]\nnumber = 2\n[train]\nlr = 2e-3\n" + grid, [](Result& r) { set_accuracy(r, .9 + wobble(r)); });
  for (const auto& rate : rates)
    for (auto& run : small_runs("[task]\nnumber = 3\n[train]\nlr = " + rate + "\n" + grid, [&](Result& r) {
           set_accuracy(r, (r.model == "gla" ? .7 : .8) + wobble(r) + (rate == "4e-3" ? .15 : 0));
         }))
      runs.push_back(std::move(run));
  const auto rows = rows_from(runs);
  for (auto& one : judged(rows, "failure_signatures").comparisons)
    if (one.comparison->name() == "task 2 to 3, drop: GLA − Mamba") return one;
  throw std::runtime_error("no such comparison");
}

TEST(Choices, DropsHaveOneLearningRateOnBothTasks) {
  EXPECT_EQ(drop_with({"2e-3"}).words(), "supported");
  EXPECT_EQ(drop_with({"4e-3"}).words(), "undecided (learning rates of the tasks differ)");
  const auto both = drop_with({"2e-3", "4e-3"});
  EXPECT_EQ(both.words(), "supported") << "4e-3 is better, but task 2 was not run there";
  EXPECT_NEAR(both.a->mean, .2, .01);
}

TEST(Choices, StayOpenIfVariantLacksBestRate) {
  auto runs =
      small_runs("[grid]\ntask.number = [1]\nmodel.name = [\"gla\"]\nrun.seed = [11]\ntrain.lr = [1e-3, 2e-3]\n",
                 [](Result& r) { set_accuracy(r, r.lr > 1.5e-3 ? .4 : .3); });
  const auto with_pre = [&](double lr) {
    for (auto run :
         small_runs("[grid]\ntask.number = [1]\nmodel.name = [\"gla\"]\nrun.seed = [11]\ntrain.lr = [1e-3, 2e-3]\n",
                    [](Result& r) { set_accuracy(r, .2); })) {
      if (run.result.lr != lr) continue;
      run.result.config["model.residual"] = "\"pre\"";
      run.result.run_id += "pre";
      runs.push_back(std::move(run));
    }
    return choices_of(rows_from(runs), shipped_claims())[1];
  };
  const Choice early = with_pre(1e-3);
  EXPECT_TRUE(early.chosen && early.open && early.at_edge);
  const Choice late = with_pre(2e-3);
  EXPECT_TRUE(late.chosen && late.at_edge);
  EXPECT_FALSE(late.open);
}

TEST(Protocol, IsDerivedFromConfigKeys) {
  const auto label = [](const std::string& text, const std::set<std::string>& ignored = {}) {
    const auto runs = small_runs(text + "[grid]\nmodel.name = [\"delta_net\"]\nrun.seed = [1]\n");
    return protocol_of(runs.front().result.config, ignored);
  };
  EXPECT_EQ(label(""), "corrected");
  EXPECT_EQ(label("[quirks]\ndelta_bf16 = true\n"), "corrected but delta_bf16");
  EXPECT_EQ(label("[quirks]\ndelta_bf16 = true\n", {"quirks.delta_bf16"}), "corrected");
  auto runs = small_runs("[grid]\nmodel.name = [\"delta_net\"]\nrun.seed = [1]\n");
  make_published(runs.front().result);
  EXPECT_EQ(protocol_of(runs.front().result.config), "published");
  EXPECT_EQ(protocols_of(rows_from(chosen_runs())), std::vector<std::string>{"corrected"});
}

}  // namespace
}  // namespace sb::test
