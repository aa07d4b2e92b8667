#include "report/rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "report/table.h"
#include "synthetic.h"

namespace sb::test {
namespace {

const std::string two_rates = R"(
[grid]
train.lr = [1e-3, 2e-3]
run.seed = [1, 2, 3]
)";

// Accuracies by (learning rate in thousandths, seed): valid and test.
std::function<void(Result&)> scores(std::map<std::pair<int, int>, std::pair<double, double>> table) {
  return [table = std::move(table)](Result& r) {
    const auto it = table.find({static_cast<int>(std::lround(r.lr * 1000)), static_cast<int>(r.run_seed)});
    if (it == table.end()) return;
    r.valid->accuracy = it->second.first;
    r.test->accuracy = it->second.second;
  };
}

Rows rows_without(const std::string& suite, const std::function<bool(const Result&)>& gone,
                  const std::function<void(Result&)>& change = {}) {
  auto runs = runs_of(suite_of(suite), change);
  std::erase_if(runs, [&](const TableRun& run) { return gone(run.result); });
  return make_rows(std::move(runs), Axes{});
}

bool noted(const Rows& rows, const std::string& part) {
  return std::any_of(rows.notes.begin(), rows.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

double rate_of(const Rows& rows, size_t cell = 0) {
  const Group& group = rows.groups[rows.cells[cell].group];
  return group.chosen ? std::stod(group.candidates[*group.chosen].settings[0]) : 0;
}

TEST(Rows, SelectOneLearningRatePerCellByValidAccuracy) {
  // Seed by seed another rate is best; in the mean 0.001 is on valid and 0.002 on test.
  const Rows rows = rows_of(suite_of(two_rates), scores({{{1, 1}, {.9, .1}},
                                                         {{1, 2}, {.5, .2}},
                                                         {{1, 3}, {.5, .3}},
                                                         {{2, 1}, {.5, .9}},
                                                         {{2, 2}, {.6, .9}},
                                                         {{2, 3}, {.6, .9}}}));
  ASSERT_EQ(rows.cells.size(), 1U);
  EXPECT_EQ(rate_of(rows), 1e-3);
  EXPECT_EQ(rows.cells[0].runs.size(), 3U);
  EXPECT_NEAR(rows.cells[0].mean, .2, 1e-12);
  EXPECT_NEAR(*rows.cells[0].sd, .1, 1e-12);
  EXPECT_NEAR(*rows.cells[0].ceiling, .99, 1e-12);
}

TEST(Rows, SplitGrammarSizesAndAverageTrainSeeds) {
  const Rows rows = rows_of(suite_of(R"(
[grid]
size = [{grammar.vocab = 5, grammar.ambiguities = 4, grammar.depth = 4},
        {grammar.vocab = 9, grammar.ambiguities = 8, grammar.depth = 8}]
train.seed = [1, 2, 3]
)"));
  ASSERT_EQ(rows.cells.size(), 2U);
  for (const auto& cell : rows.cells) {
    EXPECT_EQ(cell.runs.size(), 3U);
    EXPECT_EQ(cell.grammars, 1);
    EXPECT_TRUE(cell.sd.has_value());
  }
}

TEST(Rows, ListCandidatesWithMissingSeedsAsNotEligible) {
  const Rows rows = rows_without(
      two_rates, [](const Result& r) { return r.lr > 1.5e-3 && r.run_seed == 2; },
      [](Result& r) { r.valid->accuracy = r.lr > 1.5e-3 ? .9 : .1; });
  EXPECT_EQ(rate_of(rows), 1e-3);
  EXPECT_TRUE(noted(rows, "lr 0.002 warmup 476 not eligible: lacks seed 2; its mean accuracy, 0.900, is over 2 of 3"));
  for (size_t i = 0; i < rows.runs.size(); ++i)
    EXPECT_EQ(rows.standing[i], rows.runs[i].result.lr > 1.5e-3 ? Standing::not_eligible : Standing::averaged);
}

TEST(Rows, SelectByCommonSeedsIfNoCandidateIsComplete) {
  const Rows rows = rows_without(
      two_rates, [](const Result& r) { return (r.lr > 1.5e-3) ? r.run_seed == 2 : r.run_seed == 3; },
      scores({{{1, 1}, {.5, .5}}, {{1, 2}, {.99, .5}}, {{2, 1}, {.6, .5}}, {{2, 3}, {.1, .5}}}));
  EXPECT_EQ(rate_of(rows), 2e-3);
  EXPECT_TRUE(noted(rows, "no setting has every seed"));
  EXPECT_TRUE(noted(rows, "averaged over their common seeds only (seed 1)"));
  ASSERT_EQ(rows.cells[0].runs.size(), 1U);
  EXPECT_EQ(rows.runs[rows.cells[0].runs[0]].result.run_seed, 1U);
  size_t not_common = 0;
  for (const auto standing : rows.standing) not_common += standing == Standing::seed_not_common;
  EXPECT_EQ(not_common, 1U);
}

TEST(Rows, SelectNoCandidateWithoutCommonSeed) {
  const Rows rows =
      rows_without(two_rates, [](const Result& r) { return (r.lr > 1.5e-3) != (r.run_seed == 1) || r.run_seed == 3; });
  ASSERT_EQ(rows.runs.size(), 2U);
  ASSERT_EQ(rows.cells.size(), 1U);
  EXPECT_FALSE(rows.groups[0].chosen.has_value());
  EXPECT_TRUE(rows.cells[0].runs.empty());
  EXPECT_TRUE(noted(rows, "no setting chosen"));
  EXPECT_EQ(status_of(rows, rows.cells[0]), "none chosen");
  for (const auto standing : rows.standing) EXPECT_EQ(standing, Standing::none_chosen);
}

void diverge(Result& r) {
  r.status = "diverged";
  r.test.reset();
  r.valid.reset();
  r.grid.clear();
}

TEST(Rows, CandidateWithDivergedSeedIsNotEligible) {
  const Rows rows = rows_of(suite_of(two_rates), [](Result& r) {
    r.valid->accuracy = r.lr > 1.5e-3 ? .9 : .1;
    if (r.lr > 1.5e-3 && r.run_seed == 2) diverge(r);
  });
  EXPECT_EQ(rate_of(rows), 1e-3);
  EXPECT_TRUE(noted(rows, "lr 0.002 warmup 476 not eligible: diverged at seed 2; its mean accuracy"));
  EXPECT_FALSE(noted(rows, "lacks"));
  EXPECT_TRUE(rows.groups[0].candidates[1].missing.empty());
}

TEST(Rows, SeedDivergedInAllCandidatesIsOnlyCounted) {
  const Rows rows = rows_of(suite_of(two_rates), [](Result& r) {
    r.valid->accuracy = r.lr > 1.5e-3 ? .9 : .1;
    if (r.run_seed == 2) diverge(r);
  });
  EXPECT_EQ(rate_of(rows), 2e-3);
  EXPECT_EQ(rows.cells[0].runs.size(), 2U);
  EXPECT_EQ(rows.cells[0].diverged, 1U);
  EXPECT_TRUE(noted(rows, "diverged at seed 2"));
}

TEST(Rows, SeedDivergedOnlyInOtherCandidatesIsMissing) {
  const auto diverged_above = [](Result& r) {
    if (r.lr > 1.5e-3) diverge(r);
  };
  const Rows rows = rows_without(
      two_rates, [](const Result& r) { return r.lr < 1.5e-3 ? r.run_seed != 1 : r.run_seed == 3; }, diverged_above);
  ASSERT_EQ(rows.runs.size(), 3U);
  EXPECT_EQ(rate_of(rows), 1e-3);
  EXPECT_EQ(rows.groups[0].candidates[0].missing, std::vector<std::string>{"seed 2"});
  EXPECT_TRUE(rows.groups[0].candidates[1].missing.empty());
  EXPECT_TRUE(noted(rows, "lr 0.001 warmup 476: has no run of seed 2; the settings that have one diverged there"));
  EXPECT_TRUE(noted(rows, "lr 0.002 warmup 476 not eligible: diverged at seed 1, seed 2"));
  const auto json = nlohmann::json::parse(cell_table(rows, TableFormat::json));
  EXPECT_EQ(json.at("cells").at(0).at("settings").at(0).at("missing"), nlohmann::json({"seed 2"}));

  const Rows none = rows_without(
      two_rates, [](const Result& r) { return r.lr < 1.5e-3 && r.run_seed > 1; }, diverge);
  EXPECT_EQ(none.groups[0].candidates[0].missing, (std::vector<std::string>{"seed 2", "seed 3"}));
  EXPECT_TRUE(noted(none, "all 4 runs diverged"));
}

TEST(Rows, CellIsEmptyIfAllRunsDiverged) {
  const Rows rows = rows_of(suite_of(two_rates), diverge);
  ASSERT_EQ(rows.cells.size(), 1U);
  EXPECT_TRUE(rows.cells[0].runs.empty());
  EXPECT_EQ(rows.cells[0].diverged, 6U);
  EXPECT_EQ(status_of(rows, rows.cells[0]), "diverged");
  EXPECT_TRUE(noted(rows, "all 6 runs diverged"));
}

TEST(Rows, NoteSelectionOnTestSet) {
  EXPECT_TRUE(noted(rows_of(suite_of("[quirks]\nselect_on_test = true\n" + two_rates)), "select_on_test"));
  EXPECT_FALSE(noted(rows_of(suite_of(two_rates)), "select_on_test"));
}

TEST(Rows, SpreadIsOverGrammarsIfThereAreSeveral) {
  const Rows rows = rows_of(suite_of("[grid]\ngrammar.seed = [1, 2]\ntrain.seed = [1, 2, 3]\n"), [](Result& r) {
    r.test->accuracy = .1 * static_cast<double>(r.grammar_seed) + .3 * static_cast<double>(r.train_seed);
  });
  ASSERT_EQ(rows.cells.size(), 1U);
  EXPECT_EQ(rows.cells[0].runs.size(), 6U);
  EXPECT_EQ(rows.cells[0].grammars, 2);
  EXPECT_NEAR(rows.cells[0].mean, .75, 1e-12);
  EXPECT_NEAR(*rows.cells[0].sd, .1 / std::sqrt(2.0), 1e-12);
}

TEST(Rows, SpreadNamesItsAxis) {
  const auto over = [](const std::string& text) { return rows_of(suite_of(text)).cells.at(0).sd_over; };
  EXPECT_EQ(over("[grid]\ntrain.seed = [1, 2]\n"), "train seeds");
  EXPECT_EQ(over("[grid]\nrun.seed = [1, 2]\n"), "grammars");
  const std::string noise = "[suite]\naverage = [\"task.noise\"]\n[grid]\ntask.noise = [0.0, 0.1]\n";
  EXPECT_EQ(over(noise), "task.noise");
  EXPECT_EQ(over(noise + "train.seed = [1, 2]\n"), "train.seed and task.noise");
  EXPECT_EQ(over(noise + "grammar.seed = [1, 2]\n"), "grammars");
  EXPECT_EQ(over("[suite]\naverage = [\"grammar.density\"]\n[grid]\ngrammar.density = [0.1, 0.2]\n"),
            "grammar.density");
}

TEST(Rows, SeedsWithAutomatonAreNotGrammars) {
  const auto rows = [](const std::string& grid, const std::function<std::string(const Result&)>& file) {
    return rows_of(suite_of(grid), [&](Result& r) { r.config["grammar.automaton"] = "\"" + file(r) + "\""; });
  };
  const auto one = [](const Result&) { return std::string("5a"); };
  const Rows both = rows("[grid]\nrun.seed = [1, 2]\n", one);
  ASSERT_EQ(both.cells.size(), 1U);
  EXPECT_EQ(both.cells[0].runs.size(), 2U);
  EXPECT_EQ(both.cells[0].grammars, 1);
  EXPECT_EQ(both.cells[0].sd_over, "grammar.seed and train.seed");
  const std::string text = cell_table(both, TableFormat::text);
  EXPECT_NE(text.find("mean of 2 runs ± half of the 95 % interval over grammar.seed and train.seed"), std::string::npos)
      << text;
  EXPECT_EQ(rows("[grid]\ngrammar.seed = [1, 2]\n", one).cells.at(0).sd_over, "grammar.seed");
  EXPECT_EQ(rows("[grid]\ntrain.seed = [1, 2]\n", one).cells.at(0).sd_over, "train seeds");

  // Two automata, two seeds each: the spread is over the automata's means.
  const Rows two = rows(
      "[suite]\naverage = [\"grammar.automaton\", \"task.noise\"]\n[grid]\nrun.seed = [1, 2]\n"
      "task.noise = [0.0, 0.1]\n",
      [](const Result& r) { return std::string(r.config.at("task.noise") == "0.1" ? "5a" : "5b"); });
  ASSERT_EQ(two.cells.size(), 1U);
  EXPECT_EQ(two.cells[0].runs.size(), 4U);
  EXPECT_EQ(two.cells[0].grammars, 2);
  EXPECT_EQ(two.cells[0].sd_over, "grammar.automaton");
}

TEST(Rows, OrderSeedsAreAveraged) {
  const std::string grid = "[grid]\ntrain.lr = [1e-3, 2e-3]\ntrain.order_seed = [0, 1, 2]\n";
  const Rows rows = rows_of(suite_of(grid));
  ASSERT_EQ(rows.cells.size(), 1U);
  EXPECT_EQ(rows.cells[0].runs.size(), 3U);
  EXPECT_EQ(rows.cells[0].grammars, 1);
  EXPECT_EQ(rows.cells[0].sd_over, "order seeds");
  EXPECT_TRUE(averaged_further(rows).empty());
  EXPECT_EQ(seeds_text(rows, rows.cells[0].runs[0]), "seed 1");
  EXPECT_EQ(seeds_text(rows, rows.cells[0].runs[2]), "seed 1 train.order_seed 2");
  const Rows without = rows_of(suite_of("[grid]\ntrain.seed = [1, 2]\n"));
  EXPECT_EQ(without.axes.average, (std::vector<std::string>{"grammar.seed", "train.seed"}));
}

TEST(Rows, RejectAveragingDifferentQuantities) {
  for (const char* key : {"task.objective", "task.number", "model.layers", "quirks.first_lr_zero"}) {
    const std::string text = "[suite]\naverage = [\"" + std::string(key) + "\"]\n";
    EXPECT_NE(error_line([&] { suite_of(text); }).find("got " + std::string(key)), std::string::npos) << key;
  }
}

TEST(Rows, OneRunHasNoSpread) {
  EXPECT_FALSE(rows_of(suite_of("[grid]\nrun.seed = [1]\n")).cells[0].sd.has_value());
}

TEST(Rows, GapLengthsAreSeparateCellsOfSameRuns) {
  const Rows rows = rows_of(suite_of("[task]\nnumber = 2\n[eval]\ngaps = [20, 50]\n[grid]\nrun.seed = [1, 2]\n"));
  ASSERT_EQ(rows.cells.size(), 3U);
  EXPECT_FALSE(rows.cells[0].point.at.has_value());
  EXPECT_EQ(rows.cells[1].point.at, 20);
  EXPECT_EQ(rows.cells[2].point.at, 50);
  EXPECT_NEAR(*rows.cells[2].ceiling, .98, 1e-12);
  for (const auto& cell : rows.cells) EXPECT_EQ(cell.runs, rows.cells[0].runs);
}

TEST(Rows, SavedEvaluationsAreCellsWithRunCounts) {
  auto runs = runs_of(suite_of("[task]\nnumber = 2\n[grid]\nrun.seed = [1, 2]\n"));
  runs[1].evaluations.push_back(measured("test", .25, .9));
  runs[1].evaluations.back().at = 30;
  const Rows rows = make_rows(std::move(runs), Axes{});
  ASSERT_EQ(rows.cells.size(), 2U);
  EXPECT_EQ(rows.cells[1].point.at, 30);
  EXPECT_DOUBLE_EQ(rows.cells[1].mean, .25);
  EXPECT_TRUE(noted(rows, "gap 30, test, 100 samples: measured in 1 of 2 runs"));
}

TEST(Rows, SavedEvaluationWithGridSamplesSharesGridColumn) {
  auto runs = runs_of(suite_of("[task]\nnumber = 2\n[grid]\nrun.seed = [1]\n"));
  for (const double accuracy : {.25, .26}) {  // the second has other samples
    runs[0].evaluations.push_back(measured("test", accuracy, .9, accuracy < .255 ? 1000 : 200));
    runs[0].evaluations.back().at = 30;
  }
  runs[0].evaluations.push_back(measured("test", .5, .9, runs[0].result.test->samples));  // the run's own test again
  const Rows rows = make_rows(std::move(runs), Axes{});
  ASSERT_EQ(rows.cells.size(), 3U);
  EXPECT_EQ(rows.cells[1].point, (Point{30, "", 0}));
  EXPECT_EQ(rows.cells[2].point, (Point{30, "test", 200}));
}

TEST(Rows, EvaluationOnOtherDeviceIsSeparateCell) {
  auto runs = runs_of(suite_of("[task]\nnumber = 2\n[grid]\nrun.seed = [1, 2]\n"));
  for (auto& run : runs) {
    const int64_t own = run.result.test->samples;
    run.evaluations.emplace_back(measured("test", .25, .9, own), "cpu, fp32");
    Measurement gap = measured("test", .75, .9, 1000);
    gap.at = 30;
    if (&run == &runs[0])
      run.evaluations.emplace_back(gap);
    else
      run.evaluations.emplace_back(gap, "cpu, fp32");
  }
  const Rows rows = make_rows(std::move(runs), Axes{});
  ASSERT_EQ(rows.cells.size(), 4U);
  EXPECT_EQ(rows.cells[0].point, Point{});
  EXPECT_EQ(rows.cells[1].point, (Point{std::nullopt, "test", 1000, "cpu, fp32"}));
  EXPECT_EQ(rows.cells[1].runs.size(), 2U);
  EXPECT_DOUBLE_EQ(rows.cells[1].mean, .25);
  EXPECT_EQ(rows.cells[2].point, (Point{30, "", 0}));
  EXPECT_EQ(rows.cells[2].runs.size(), 1U);
  EXPECT_EQ(rows.cells[3].point, (Point{30, "test", 1000, "cpu, fp32"}));
  EXPECT_TRUE(noted(rows, "gap 30, test, 1000 samples, computed on cpu, fp32: measured in 1 of 2 runs"));
}

TEST(Rows, SecondCopyOfRunIsExcludedAndNamed) {
  auto runs = runs_of(suite_of("[grid]\nrun.seed = [1, 2]\n"));
  runs.push_back(runs[0]);
  runs.back().folder = "elsewhere";
  const Rows rows = make_rows(std::move(runs), Axes{});
  EXPECT_EQ(rows.cells[0].runs.size(), 2U);
  EXPECT_TRUE(noted(rows, "in elsewhere: a second copy of the run in runs/"));
}

TEST(Rows, UnusableRunsAreExcludedAndNamed) {
  auto runs = runs_of(suite_of("[grid]\nrun.seed = [1, 2, 3]\n"));
  runs[0].result.test.reset();
  runs[1].result.test->accuracy = std::nan("");
  const Rows rows = make_rows(std::move(runs), Axes{});
  EXPECT_EQ(rows.runs.size(), 1U);
  EXPECT_TRUE(noted(rows, "without a test accuracy: not finite"));
  EXPECT_EQ(rows.untested.size(), 1U);
  EXPECT_EQ(rows.damaged.size(), 1U);
  EXPECT_TRUE(noted(rows, "not a number"));
}

TEST(Rows, QuirksOfResultSeparateCells) {
  const Rows rows = rows_of(suite_of("[grid]\nrun.seed = [1, 2]\n"), [](Result& r) {
    if (r.run_seed == 2) r.quirks = {"delta_bf16"};
  });
  EXPECT_EQ(rows.cells.size(), 2U);
}

TEST(Rows, SuiteAddsAxesToSelectAndAverageOver) {
  const std::string grid = R"(
[grid]
train.weight_decay = [0.0, 0.1]
grammar.depth = [20, 40]
run.seed = [1, 2]
)";
  EXPECT_EQ(rows_of(suite_of(grid)).cells.size(), 4U);
  const Rows selected = rows_of(suite_of("[suite]\nselect = [\"train.weight_decay\"]\n" + grid));
  EXPECT_EQ(selected.cells.size(), 2U);
  EXPECT_EQ(selected.groups[0].candidates.size(), 2U);
  EXPECT_EQ(rows_of(suite_of("[suite]\nselect = [\"train.weight_decay\"]\naverage = [\"grammar.depth\", "
                             "\"grammar.density\"]\n" +
                             grid))
                .cells.size(),
            1U);
}

TEST(Rows, SwitchIsSelectedByItsConfigName) {
  const Rows rows = rows_of(suite_of(R"(
[suite]
select = ["model.d_state"]
[model]
name = "mamba2"
[grid]
model.d_state = [32, 64]
)"));
  ASSERT_EQ(rows.groups.size(), 1U);
  EXPECT_EQ(rows.groups[0].candidates.size(), 2U);
}

TEST(Rows, UndamagedCopyIsPreferred) {
  auto runs = runs_of(suite_of("[grid]\nrun.seed = [1, 2]\n"));
  runs.push_back(runs[0]);
  runs[0].damaged = 1;
  runs[2].folder = "copies/" + runs[2].result.run_id;
  const std::string torn = runs[0].folder;
  const Rows rows = make_rows(std::move(runs), Axes{});
  ASSERT_EQ(rows.runs.size(), 2U);
  for (const auto& run : rows.runs) EXPECT_NE(run.folder, torn);
  ASSERT_EQ(rows.notes.size(), 1U);
  EXPECT_NE(rows.notes[0].find(torn + ": a second copy of the run in copies/"), std::string::npos) << rows.notes[0];
  EXPECT_NE(rows.notes[0].find("which is used because a saved evaluation of this copy is damaged"), std::string::npos)
      << rows.notes[0];
}

TEST(Rows, IndexOrderIsOrderSeedZero) {
  const Rows rows = rows_of(suite_of("[grid]\ntrain.order_seed = [0, 3]\n"));
  ASSERT_EQ(rows.cells.size(), 1U);
  const auto json = nlohmann::json::parse(run_table(rows, TableFormat::json));
  std::set<int> seeds;
  for (const auto& run : json.at("runs")) seeds.insert(run.at("train.order_seed").get<int>());
  EXPECT_EQ(seeds, (std::set<int>{0, 3}));
  EXPECT_EQ(seeds_text(rows, 0), "seed 1");
}

}  // namespace
}  // namespace sb::test
