// Means over different grammars are not held against each other, intervals stay within what an accuracy can be, and a
// comparison has one interval wherever it stands.
#include <gtest/gtest.h>

#include "made_up.h"

namespace sb::test {
namespace {

void finish_with(const std::string& root, const std::string& model, int seed, double accuracy,
                 std::optional<int64_t> shared_by = {}) {
  const ResolvedConfig config = small_config(model, seed);
  Result result = rich_result(config);
  result.test->accuracy = accuracy;
  result.made->tokens_per_second = shared_by.value_or(1) > 1 ? 100 : 300;
  result.made->shared_by = shared_by;
  finish_run(root, config, std::move(result));
}

const PageCell& cell_of(const PageData& data, const std::string& model) {
  for (const auto& cell : data.cells)
    for (const auto& series : data.series)
      if (series.id == cell.series && series.model == model) return cell;
  throw std::runtime_error("no cell of " + model);
}

bool marked(const PageCell& cell, const std::string& kind) {
  return std::any_of(cell.marks.begin(), cell.marks.end(), [&](const PageMark& mark) { return mark.kind == kind; });
}

bool captioned(const PageData& data, const std::string& what) {
  return std::any_of(data.caption.begin(), data.caption.end(),
                     [&](const auto& line) { return line.find(what) != std::string::npos; });
}

TEST(UnevenGrammars, BestHasMostGrammarsAndFewerAreMarked) {
  TemporaryFolder root;
  for (const int seed : {1, 2, 3}) finish_with(root.path(), "gla", seed, .5 + .01 * seed);
  for (const int seed : {1, 2, 3}) finish_with(root.path(), "mamba", seed, .4 + .02 * seed);
  finish_with(root.path(), "transformer", 3, .9);  // an easy grammar
  const PageData data = page_of(root.path());
  EXPECT_TRUE(cell_of(data, "gla").best);
  EXPECT_FALSE(cell_of(data, "transformer").best);
  EXPECT_TRUE(marked(cell_of(data, "transformer"), "fewer_grammars"));
  EXPECT_FALSE(marked(cell_of(data, "mamba"), "fewer_grammars"));
  EXPECT_EQ(cell_of(data, "transformer").uneven_text, "n = 1");
  EXPECT_EQ(cell_of(data, "gla").uneven_text, "n = 3");
  EXPECT_TRUE(captioned(data, "fewer grammars (n) than others"));
}

TEST(UnevenGrammars, AreNotNotedIfAllHaveTheSame) {
  TemporaryFolder root;
  for (const char* model : {"gla", "mamba"})
    for (const int seed : {1, 2}) finish_with(root.path(), model, seed, .5 + .01 * seed);
  const PageData data = page_of(root.path());
  for (const auto& cell : data.cells) {
    EXPECT_EQ(cell.uneven_text, "");
    EXPECT_FALSE(marked(cell, "fewer_grammars"));
  }
  EXPECT_FALSE(captioned(data, "fewer grammars (n) than others"));
}

// A network with nine times the parameters or ten times the samples is not a better model.
TEST(Best, IsNotMarkedAcrossScales) {
  const auto best_of = [](const std::vector<std::string>& other) {
    TemporaryFolder root;
    const std::string text = "[grammar]\nvocab = 6\nambiguities = 2\ndepth = 3\n[task]\nnumber = 1\n";
    for (const std::string seed : {"1", "2"}) {
      const ResolvedConfig one = resolve_text(text, {"model.name=gla", "model.width=64", "run.seed=" + seed});
      std::vector<std::string> settings = {"model.name=mamba", "model.width=64", "run.seed=" + seed};
      settings.insert(settings.end(), other.begin(), other.end());
      const ResolvedConfig two = resolve_text(text, settings);
      for (const auto* config : {&one, &two}) finish_run(root.path(), *config, rich_result(*config));
    }
    const PageData data = page_of(root.path());
    EXPECT_EQ(data.cells.size(), 2U);
    const bool any = std::any_of(data.cells.begin(), data.cells.end(), [](const PageCell& cell) { return cell.best; });
    EXPECT_NE(any, captioned(data, "No best is marked in a column whose networks differ"));
    return any;
  };
  EXPECT_TRUE(best_of({}));
  EXPECT_FALSE(best_of({"model.width=192"}));
  EXPECT_FALSE(best_of({"train.batch=640"}));
}

TEST(Intervals, AreClippedToAccuracyRange) {
  TemporaryFolder root;
  finish_with(root.path(), "gla", 1, .9);
  finish_with(root.path(), "gla", 2, .98);
  finish_with(root.path(), "mamba", 1, .5);
  finish_with(root.path(), "mamba", 2, .501);
  const PageData data = page_of(root.path());
  const PageCell& high = cell_of(data, "gla");
  EXPECT_EQ(*high.high, 1);
  EXPECT_EQ(high.interval_text, "[0.432, 1.000]");
  EXPECT_TRUE(cell_of(data, "mamba").interval_text.starts_with("± "));
  EXPECT_TRUE(captioned(data, "Intervals are clipped"));
  const Figure* overview = find_figure(data, "overview");
  ASSERT_TRUE(overview);
  for (const auto& row : overview->rows) EXPECT_LE(std::stod(row[4].text()), 1);
}

TEST(Intervals, AreTheSameInSummaryAndCompare) {
  TemporaryFolder root;
  for (const char* model : {"gla", "mamba", "transformer"})
    for (const int seed : {1, 2, 3}) finish_small(root.path(), model, seed);
  const PageData data = page_of(root.path());
  std::string best;
  for (const auto& cell : data.cells)
    if (cell.best) best = cell.series;
  size_t compared = 0;
  for (const auto& cell : data.cells)
    for (const auto& pair : data.compare.columns.front().pairs) {
      if (!cell.versus_best || pair.a != cell.series || pair.b != best) continue;
      EXPECT_EQ(cell.versus_best->interval_text, pair.interval_text);
      EXPECT_EQ(cell.versus_best->difference_text, pair.difference_text);
      EXPECT_EQ(cell.versus_best->p, pair.p);
      ++compared;
    }
  for (const auto& cell : data.cells)
    for (const auto& pair : data.compare.columns.front().pairs) {
      if (!cell.versus_best || pair.b != cell.series || pair.a != best) continue;
      EXPECT_EQ(cell.versus_best->difference, -pair.difference);
      EXPECT_EQ(cell.versus_best->p, pair.p);
      ++compared;
    }
  EXPECT_EQ(compared, 2U);
}

TEST(Speeds, UseOnlyRunsAloneOnTheirDevice) {
  TemporaryFolder root;
  finish_with(root.path(), "gla", 1, .5, 3);
  finish_with(root.path(), "gla", 2, .5, 1);
  finish_with(root.path(), "mamba", 1, .5, 3);
  finish_with(root.path(), "mamba", 2, .5, 3);
  finish_with(root.path(), "transformer", 1, .5);
  const PageData data = page_of(root.path());
  std::map<std::string, std::string> speeds;
  for (const auto& row : data.summary)
    for (const auto& series : data.series)
      if (series.id == row.series) speeds[series.model] = row.speed_text;
  EXPECT_EQ(speeds["gla"], "300");
  EXPECT_EQ(speeds["mamba"], "100 (shared)");
  EXPECT_EQ(speeds["transformer"], "300");
  EXPECT_TRUE(captioned(data, "shared it with other runs"));
  EXPECT_TRUE(std::any_of(data.runs.begin(), data.runs.end(),
                          [](const PageRun& run) { return run.speed_text == "100 (3 runs at once)"; }));
}

}  // namespace
}  // namespace sb::test
