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
  const std::string page = findings_page(rows, shipped_claims(), "results/");
  EXPECT_NE(page.find("| GLA | post | 0.002 | .4000 | chosen |"), std::string::npos) << page;
  EXPECT_NE(page.find("| GLA | post | 0.001 | .4000 | best |"), std::string::npos) << page;
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
