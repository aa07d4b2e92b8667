#include "findings/results_table.h"

#include <gtest/gtest.h>

#include "../base/expect.h"
#include "../report/synthetic.h"
#include "base/number.h"

namespace sb::test {
namespace {

using Column = ResultColumn;

ResultValue value(double accuracy, double half, const std::set<std::string>& grammars) {
  return {accuracy, Interval{accuracy - half, accuracy + half}, grammars, {}};
}

ResultsTable two_models() {
  ResultsTable out = {{"GLA", {}}, {"Mamba2", {}}, {"ceiling", {}}};
  out[0].cells[{1, Column::paper}] = value(.75, .01, {});
  out[0].cells[{1, Column::reproduced}] = value(.734, .02, {"1", "2"});
  out[0].cells[{1, Column::corrected}] = value(.98, .03, {"1", "2"});
  out[0].cells[{2, Column::paper}] = value(.68, .05, {});
  out[1].cells[{1, Column::reproduced}].footnotes = {"Collapsed: seed_1."};
  out[1].cells[{1, Column::corrected}] = {.5, std::nullopt, {"1", "2"}, {"Diverged: seed 2.", "Collapsed: seed_1."}};
  out[2].cells[{1, Column::corrected}] = {.997, std::nullopt, {"1", "2"}, {}};
  return out;
}

TEST(ResultsTable, LongFormHasIntervalsGrammarsAndFootnotes) {
  EXPECT_EQ(
      results_markdown(two_models()),
      "| model | task 1: paper | reproduced | corrected |\n"
      "|---|---:|---:|---:|\n"
      "| GLA | .750 ± .010 | .734 ± .020 (2) | .980 [.950, 1.000] (2) |\n"
      "| Mamba2 | – | –¹ | .500 (2)¹ ² |\n"
      "| ceiling | – | – | .997 (2) |\n"
      "\nIn brackets: the number of grammars, the same for all rows of a column. ± is half of the 95 % interval over "
      "at least three grammars, or under *paper* the paper's own ±. Square brackets hold an interval that is cut at 0 "
      "or 1.\n"
      "\n¹ Collapsed: seed\\_1.\n"
      "\n² Diverged: seed 2.\n");
}

TEST(ResultsTable, ShortFormHasMeansOfMeasuredColumns) {
  EXPECT_EQ(short_results_markdown(two_models()),
            "| model | task 1: paper | reproduced | corrected |\n"
            "|---|---:|---:|---:|\n"
            "| GLA | .750 | .734 | .980 |\n"
            "| Mamba2 | – | –¹ | .500¹ ² |\n"
            "| ceiling | – | – | .997 |\n"
            "\nMeans over 2 grammars, the same for all rows of a column. The paper's numbers are means over four.\n"
            "\n¹ Collapsed: seed\\_1.\n"
            "\n² Diverged: seed 2.\n");
}

TEST(ResultsTable, ShowsRangeOfGrammarsIfTheirIntervalSaysNothing) {
  const ResultsTable table = {{"GLA",
                               {{{4, ResultColumn::corrected},
                                 {.632, Interval{-.16, 1.42}, {"1", "2", "3"}, {}, {}, {}, {}, {}, {.25, .83}}}}}};
  EXPECT_TRUE(has(results_markdown(table), "| .632, .250 to .830 (3) |",
                  "If the interval would contain every accuracy, the cell shows the lowest and the highest grammar"));
}

TEST(ResultsTable, NotesRowsWithDifferentGrammars) {
  ResultsTable table = two_models();
  table[0].cells[{1, Column::corrected}].grammars = {"1"};
  EXPECT_TRUE(
      has(short_results_markdown(table), "Means over 1 to 2 grammars; not all rows of a column have the same."));
  table[0].cells[{1, Column::corrected}].grammars = {"1", "3"};
  EXPECT_TRUE(has(results_markdown(table), "number of grammars; not all rows of a column have the same."));
}

// A protocol is how runs are trained; here dropout tells them.
std::string by_dropout(const ConfigMap& config) {
  const double dropout = parse_finite(config.at("model.dropout")).value();
  return dropout == 0 ? "corrected" : dropout == .2 ? "published" : "published but dropout 0.1";
}

Scale eight_layers() {
  Scale out;
  out.name = "paper";
  out.keys = {{"model.layers", "8"}};
  return out;
}

std::vector<TableRun> runs(const std::string& grid, const std::function<void(Result&)>& change = {}) {
  return runs_of(suite_of("[model]\nlayers = 8\nwidth = 256\n" + grid), change);
}

ResultsTable table_of(std::vector<TableRun> runs, const Claims& claims = {}) {
  return results_table(make_rows(std::move(runs), Axes{}), claims, eight_layers(), by_dropout);
}

ResultRow row_of(const ResultsTable& table, const std::string& name) {
  const auto it = std::find_if(table.begin(), table.end(), [&](const ResultRow& row) { return row.name == name; });
  if (it == table.end()) throw std::runtime_error("no row " + name);
  return *it;
}

TEST(ResultsTable, ListsModelsOfPaperInItsOrderWithItsSpread) {
  const ResultsTable table = table_of({});
  std::vector<std::string> names;
  for (const auto& row : table) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"DeltaNet", "GLA", "Mamba", "Mamba2", "Gated DeltaNet",
                                             "Gated DeltaProduct", "Transformer", "n-gram", "ceiling"}));
  EXPECT_NEAR(row_of(table, "Transformer").cells.at({3, Column::paper}).interval->high, .74, 1e-12);
  EXPECT_EQ(results_markdown(table), "No runs yet.\n");
}

TEST(ResultsTable, SplitsRunsByProtocolAndAveragesGrammars) {
  const auto all = runs(
      "[grid]\ntask.number = [1, 3]\nmodel.name = [\"gla\", \"mamba2\"]\nmodel.dropout = [0.0, 0.1, 0.2]\n"
      "run.seed = [1, 2, 3]\n",
      [](Result& r) {
        const double seed = static_cast<double>(r.grammar_seed);
        const double dropout = parse_finite(r.config.at("model.dropout")).value();
        r.test->accuracy = (r.model == "gla" ? .5 : .7) + .01 * seed - dropout - .1 * (r.task == 3);
        r.test->ceiling->accuracy = .9 + .01 * seed;
        r.baselines = BaselineFigures{.01, {}, {.1, .3 + .01 * seed}, 2, .01, 100, 100};
      });
  const ResultsTable table = table_of(all);
  const auto gla = row_of(table, "GLA").cells;
  EXPECT_NEAR(*gla.at({1, Column::corrected}).accuracy, .52, 1e-12);
  EXPECT_NEAR(*gla.at({1, Column::reproduced}).accuracy, .32, 1e-12);
  EXPECT_NEAR(*gla.at({3, Column::corrected}).accuracy, .42, 1e-12);
  EXPECT_EQ(gla.at({1, Column::corrected}).grammars.size(), 3U);
  // sd .01, t(2) = 4.3027
  EXPECT_NEAR(gla.at({1, Column::corrected}).interval->high, .52 + 4.3027 * .01 / std::sqrt(3), 1e-5);
  EXPECT_FALSE(gla.contains({2, Column::corrected}));
  EXPECT_NEAR(*row_of(table, "Mamba2").cells.at({3, Column::reproduced}).accuracy, .42, 1e-12);
  EXPECT_NEAR(*row_of(table, "ceiling").cells.at({1, Column::corrected}).accuracy, .92, 1e-12);
  EXPECT_NEAR(*row_of(table, "n-gram").cells.at({3, Column::reproduced}).accuracy, .32, 1e-12);
  EXPECT_EQ(gla.at({3, Column::reproduced}).footnotes, std::vector<std::string>{"Below the n-gram."}) << ".22";
  EXPECT_TRUE(gla.at({1, Column::corrected}).footnotes.empty());
  EXPECT_TRUE(row_of(table, "Transformer").cells.at({1, Column::paper}).accuracy);
  EXPECT_FALSE(row_of(table, "Transformer").cells.contains({1, Column::corrected}));
}

TEST(ResultsTable, MarksCorrectedFiguresThatAreNotTheBestOfTheirModel) {
  const auto cells_of = [](const std::string& model, double published) {
    const auto all = runs(
        "[grid]\ntask.number = [1]\nmodel.name = ['gla', 'mamba2']\nmodel.dropout = [0.0, 0.1, 0.2]\n", [=](Result& r) {
          const std::string protocol = by_dropout(r.config);
          r.test->accuracy = protocol == "published"                       ? published
                             : r.model == "gla" && protocol == "corrected" ? .68
                                                                           : .7;
        });
    return row_of(table_of(all), model).cells;
  };
  const ResultValue worse = cells_of("GLA", .6).at({1, Column::corrected});
  EXPECT_NEAR(worse.better.value_or(0), .7, 1e-12);
  ASSERT_EQ(worse.footnotes.size(), 1U);
  EXPECT_TRUE(worse.footnotes[0].starts_with(
      "This model reaches .700 with other settings: published but dropout 0.1, learning rate "))
      << worse.footnotes[0];
  const ResultValue below = cells_of("GLA", .75).at({1, Column::corrected});
  ASSERT_EQ(below.footnotes.size(), 1U);
  EXPECT_TRUE(below.footnotes[0].starts_with("The reproduced run is better: .750 at learning rate "))
      << below.footnotes[0];
  EXPECT_FALSE(cells_of("Mamba2", .7).at({1, Column::corrected}).better);
  EXPECT_TRUE(cells_of("GLA", .75).at({1, Column::reproduced}).footnotes.empty());
}

TEST(ResultsTable, GivesLearningRatesAndResidualsOfColumns) {
  const auto all = runs(
      "[grid]\ntask.number = [1]\nmodel.name = ['gla', 'mamba', 'mamba2']\n[train]\nlr = 4e-3\n"
      "[[override]]\nwhen = {model.name = 'gla'}\nset = {train.lr = 2e-3}\n");
  EXPECT_TRUE(has(results_markdown(table_of(all)),
                  "*Corrected* runs use learning rate 0.004 (GLA: 0.002) and [residual](configs.md#residuals) "
                  "`post` (Mamba2: `pre`)."));
}

TEST(ResultsTable, TaskFourIsMeanOverLongGaps) {
  const auto all = runs(
      "[eval]\ngaps = [10, 20, 50, 100]\n[grid]\ntask.number = [2]\nmodel.name = [\"gla\"]\n"
      "model.dropout = [0.0]\nrun.seed = [1]\n",
      [](Result& r) {
        r.test->accuracy = .8;
        for (auto& at : r.grid) at.accuracy = *at.at / 1000.0;
      });
  const auto gla = row_of(table_of(all), "GLA").cells;
  EXPECT_NEAR(*gla.at({2, Column::corrected}).accuracy, .8, 1e-12);
  EXPECT_NEAR(*gla.at({4, Column::corrected}).accuracy, .17 / 3, 1e-12);
  EXPECT_FALSE(gla.at({4, Column::corrected}).interval);
}

TEST(ResultsTable, NamesCollapsedAndDivergedRunsAndExcludesThemFromMeans) {
  const auto change = [](uint64_t collapsed, uint64_t diverged) {
    return [=](Result& r) {
      r.baselines = BaselineFigures{.01, {}, {.06, .1}, 2, .01, 100, 100};
      r.test->accuracy = r.grammar_seed == collapsed ? .009 : .6;
      if (r.grammar_seed != diverged) return;
      r.status = "diverged";
      r.test.reset();
      r.valid.reset();
    };
  };
  const std::string grid =
      "[grid]\ntask.number = [1]\nmodel.name = [\"transformer\"]\nmodel.dropout = [0.0]\nrun.seed = ";
  const ResultValue lost =
      row_of(table_of(runs(grid + "[1]\n", change(1, 0))), "Transformer").cells.at({1, Column::corrected});
  EXPECT_FALSE(lost.accuracy);
  ASSERT_EQ(lost.footnotes.size(), 1U);
  EXPECT_TRUE(lost.footnotes[0].starts_with("At learning rate 0.001 training collapsed: accuracy "))
      << lost.footnotes[0];
  const std::string text = results_markdown(table_of(runs(grid + "[1]\n", change(1, 0))));
  EXPECT_TRUE(has(text, "| Transformer | .860 ± .005 | –¹ |"));
  EXPECT_TRUE(has(short_results_markdown(table_of(runs(grid + "[1]\n", change(1, 0)))), "| Transformer | .860 | –¹ |"));

  const ResultValue part =
      row_of(table_of(runs(grid + "[1, 2, 3, 4]\n", change(2, 3))), "Transformer").cells.at({1, Column::corrected});
  EXPECT_NEAR(part.accuracy.value_or(0), .6, 1e-12);
  EXPECT_EQ(part.grammars, (std::set<std::string>{"1", "4"}));
  ASSERT_EQ(part.footnotes.size(), 2U);
  EXPECT_TRUE(
      part.footnotes[0].starts_with("Diverged in training and excluded from means: transformer, task 1, seed 3"))
      << part.footnotes[0];
  EXPECT_EQ(part.footnotes[1], "At learning rate 0.001 training collapsed on grammar 2: accuracy .009, 1-gram .060.");
}

TEST(ResultsTable, ExcludesOtherScalesTasksAndSwitches) {
  const std::string grid = "model.dropout = [0.0]\nmodel.name = [\"mamba2\"]\nrun.seed = [1]\n";
  const auto has = [](const std::vector<TableRun>& all, const Claims& claims = {}) {
    return row_of(table_of(all, claims), "Mamba2").cells.contains({1, Column::corrected});
  };
  EXPECT_TRUE(has(runs("[grid]\ntask.number = [1]\n" + grid)));
  EXPECT_FALSE(has(runs("[grid]\ntask.number = [1]\nmodel.layers = [4]\n" + grid)));
  EXPECT_FALSE(has(runs("[grid]\ntask.number = [3]\n" + grid)));
  EXPECT_FALSE(has(runs("[grid]\ntask.number = [1]\nmodel.mlp = [2]\n" + grid)));
  Claims claims;
  claims.task_keys[1] = {{"grammar.vocab", "7"}};
  EXPECT_FALSE(has(runs("[grid]\ntask.number = [1]\n" + grid), claims));
}

TEST(ResultsTable, UsesGroupWithMostGrammars) {
  auto all = runs(
      "[grid]\ntask.number = [1]\nmodel.dropout = [0.0]\nmodel.name = [\"gla\"]\nrun.seed = [1, 2]\ntrain.updates = "
      "[50]\n",
      [](Result& r) { r.test->accuracy = .3; });
  for (auto& run : runs("[grid]\ntask.number = [1]\nmodel.dropout = [0.0]\nmodel.name = [\"gla\"]\nrun.seed = "
                        "[1]\ntrain.updates = [500]\n",
                        [](Result& r) { r.test->accuracy = .9; }))
    all.push_back(run);
  EXPECT_NEAR(*row_of(table_of(all), "GLA").cells.at({1, Column::corrected}).accuracy, .3, 1e-12);
}

}  // namespace
}  // namespace sb::test
