// Choices on a grammar of their own, and the protocol of a run.
#include "findings/choices.h"

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

TEST(Choices, AreTheBestOnValidOfEachModel) {
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

TEST(Choices, AreOnAGrammarThatNoFigureHas) {
  const auto one = judged(rows_from(chosen_runs()), "gates").comparisons[0];
  EXPECT_EQ(one.effect.n, 3U);
  EXPECT_NEAR(one.a->mean, .8, .01);
  EXPECT_TRUE(one.figures.missing.empty());
}

TEST(Choices, AloneAreNoRunsOfAClaim) {
  auto runs = chosen_runs();
  std::erase_if(runs, [](const TableRun& run) { return run.result.grammar_seed != 11; });
  EXPECT_FALSE(judged(rows_from(runs), "gates").tested);
}

// Networks that differ in their residual, as configs of several residuals leave them.
std::vector<TableRun> residual_runs(const std::string& seeds, double pre) {
  auto runs = small_runs(
      "[grid]\ntask.number = [1]\nmodel.name = [\"delta_net\", \"gated_delta_net\"]\nrun.seed = " + seeds + "\n");
  std::vector<TableRun> out;
  for (const char* residual : {"post", "pre"})
    for (TableRun run : runs) {
      if (run.result.model == "delta_net" && std::string(residual) == "pre") continue;
      run.result.config["model.residual"] = "\"" + std::string(residual) + "\"";
      run.result.run_id += residual;
      set_accuracy(run.result, run.result.model == "delta_net" ? .5 : std::string(residual) == "pre" ? pre : .7);
      out.push_back(std::move(run));
    }
  return out;
}

TEST(AnArm, OfSeveralResidualsIsTheOneChosenOnValid) {
  for (const double pre : {.6, .8}) {
    auto runs = residual_runs("[11]", pre);
    // On the reported grammars the accuracies are the other way round: they decide nothing.
    const auto reported = residual_runs("[1, 2, 3]", 1.4 - pre);
    runs.insert(runs.end(), reported.begin(), reported.end());
    const Rows rows = rows_from(runs);
    const auto one = judged(rows, "gates").comparisons[0];
    EXPECT_EQ(chosen_variant(rows, shipped_claims(), "gated_delta_net")->residual, pre > .7 ? "pre" : "post");
    EXPECT_EQ(one.figures.a.variants, std::vector<std::string>{pre > .7 ? "pre" : "post"});
    EXPECT_NEAR(one.a->mean, pre > .7 ? 1.4 - pre : .7, 1e-9);
    EXPECT_EQ(one.effect.n, 3U);
  }
}

TEST(TheProtocol, FollowsFromTheKeys) {
  EXPECT_EQ(protocol_of({}), "corrected");
  EXPECT_EQ(protocol_of({{"model.dropout", "0.2"}}), "corrected but dropout 0.2");
  EXPECT_EQ(protocol_of({{"model.dropout", "0.2"}}, {"model.dropout"}), "corrected");
  EXPECT_EQ(protocol_of({{"quirks", "\"delta_bf16\""}}), "corrected but delta_bf16");
  EXPECT_EQ(protocol_of({{"quirks", "\"delta_bf16\""}}, {"quirks.delta_bf16"}), "corrected");
  EXPECT_EQ(protocol_of({{"quirks", "\"first_lr_zero\""}, {"train.dropout_until", "78"}}), "published");
  EXPECT_EQ(protocols_of(rows_from(chosen_runs())), std::vector<std::string>{"corrected"});
}

}  // namespace
}  // namespace sb::test
