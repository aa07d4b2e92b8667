// The page of runs with squared errors: less is better, and nothing is called accuracy.
#include <gtest/gtest.h>

#include <set>

#include "made_up.h"

namespace sb::test {
namespace {

ResolvedConfig tracking_config(const std::string& model, int seed, int width = 64) {
  return resolve_text("[task]\nkind = \"tracking\"\n[model]\nname = \"" + model + "\"\nwidth = " +
                      std::to_string(width) + "\n[train]\nupdates = 100\n[run]\nseed = " + std::to_string(seed) + "\n");
}

Result tracking_result(const ResolvedConfig& config, double error) {
  Result r = result_of(config);
  r.objective = "value";
  for (auto* m : {&r.test, &r.valid}) {
    (*m)->mse = error;
    (*m)->accuracy = 0;
    (*m)->ceiling->mse = .2;
    (*m)->ceiling->accuracy = (*m)->ceiling->upper_bound = 0;
  }
  return r;
}

const PageCell& tracking_cell(const PageData& data, const std::string& model) {
  for (const auto& cell : data.cells)
    for (const auto& series : data.series)
      if (series.id == cell.series && series.model == model) return cell;
  throw std::runtime_error("no cell of " + model);
}

class TwoMetrics : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const int seed : {1, 2, 3}) {
      const ResolvedConfig low = tracking_config("gla", seed), high = tracking_config("mamba", seed);
      finish_run(root.file(""), low, tracking_result(low, .3 + .01 * seed));
      finish_run(root.file(""), high, tracking_result(high, 1.5 + .01 * seed));
    }
    finish_small(root.file(""), "delta_net", 1);
    data = page_of(root.file(""));
    json = page_json(data, {});
  }
  TemporaryFolder root;
  PageData data;
  Json json;
};

TEST_F(TwoMetrics, ColumnsAndRunsSayWhatTheyMeasure) {
  std::set<std::pair<std::string, bool>> columns;
  for (const auto& column : json["columns"]) columns.emplace(column["task"].dump(), column["squared"].get<bool>());
  EXPECT_EQ(columns, (std::set<std::pair<std::string, bool>>{{"\"tracking\"", true}, {"1", false}}));
  size_t squared = 0;
  for (const auto& run : json["runs"]) {
    EXPECT_EQ(run["squared"].get<bool>(), run["task"] == "tracking");
    squared += run["squared"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(squared, 6U);
}

TEST_F(TwoMetrics, SmallestErrorIsBest) {
  const PageCell &best = tracking_cell(data, "gla"), &other = tracking_cell(data, "mamba");
  EXPECT_TRUE(best.best);
  EXPECT_FALSE(other.best);
  EXPECT_EQ(best.marks.back().text, "lowest mean of the column");
  ASSERT_TRUE(other.versus_best);
  EXPECT_EQ(other.versus_best->difference_text, "+1.2000");
  EXPECT_EQ(other.marks.back().kind, "worse") << other.marks.back().text;
  EXPECT_FALSE(best.fraction) << "an error has no share of a ceiling";
  EXPECT_EQ(best.ceiling_text, "≥ 0.200");
}

TEST_F(TwoMetrics, DifferencesAreNotOnlyOfAccuracies) {
  EXPECT_NE(data.compare.text.find("or of squared errors"), std::string::npos) << data.compare.text;
  for (const auto& line : data.caption) EXPECT_EQ(line.find("highest mean"), std::string::npos) << line;
}

TEST(SquaredPage, SaysNoAccuracyAnywhere) {
  TemporaryFolder root;
  for (const int width : {64, 128}) {
    const ResolvedConfig config = tracking_config("gla", 1, width);
    finish_run(root.file(""), config, tracking_result(config, width == 64 ? .5 : .3));
  }
  const PageData data = page_of(root.file(""));
  EXPECT_EQ(data.compare.text.find("accuracy"), std::string::npos) << data.compare.text;
  const Figure* size = find_figure(data, "size");
  ASSERT_TRUE(size);
  EXPECT_EQ(size->title, "Squared error by size of the network");
  for (const Figure& figure : data.figures) {
    std::string texts = figure.title + figure.caption + figure.summary;
    for (const auto& column : figure.columns) texts += column.title;
    EXPECT_EQ(texts.find("ccuracy"), std::string::npos) << figure.id << ": " << texts;
    const std::string spec = figure.spec.dump();
    EXPECT_EQ(spec.find("\"title\":\"test accuracy\""), std::string::npos) << spec;
  }
}

std::string method_text(const PageData& data) {
  std::string out;
  for (const auto& part : data.method)
    for (const auto& block : part.blocks) {
      out += block.text + "\n";
      for (const auto& heading : block.columns) out += heading + "|";
      for (const auto& row : block.rows)
        for (const auto& value : row) out += value + "|";
    }
  return out;
}

TEST(OtherKindsPage, MethodSaysNothingOfGapsAndListsTheKeys) {
  TemporaryFolder root;
  const ResolvedConfig config = resolve_text("[task]\nkind = \"copying\"\nsymbols = 11\n[model]\nname = \"gla\"\n");
  finish_run(root.file(""), config, result_of(config));
  const std::string method = method_text(page_of(root.file("")));
  for (const char* absent : {"automaton", "gap", "noise", "table learner", "law"})
    EXPECT_EQ(method.find(absent), std::string::npos) << absent << ": " << method;
  for (const char* shown : {"Copying: ", "|symbols|", "|11|", "the task's oracle"})
    EXPECT_NE(method.find(shown), std::string::npos) << shown << ": " << method;
}

TEST_F(TwoMetrics, MethodDescribesBothKinds) {
  const std::string method = method_text(data);
  for (const char* shown : {"automaton", "|training gaps|", "|decay|", "squared error of the outputs"})
    EXPECT_NE(method.find(shown), std::string::npos) << shown << ": " << method;
  EXPECT_EQ(method.find("oracle"), std::string::npos) << "tracking has an estimator: " << method;
}

TEST(SquaredPage, MethodSaysNoAccuracyOfErrors) {
  TemporaryFolder root;
  const ResolvedConfig config = tracking_config("gla", 1);
  finish_run(root.file(""), config, tracking_result(config, .5));
  const PageData data = page_of(root.file(""));
  const std::string method = method_text(data);
  EXPECT_EQ(method.find("Accuracy is"), std::string::npos) << method;
  EXPECT_EQ(method.find("automaton"), std::string::npos) << method;
}

TEST(OtherKindsPage, ValuesOfTheTestAxisAreCalledAt) {
  TemporaryFolder root;
  const ResolvedConfig config = resolve_text("[task]\nkind = \"copying\"\n[eval]\nlengths = [15, 20]\n");
  Result result = result_of(config);
  for (auto& point : result.grid) point.axis = "length";
  finish_run(root.file(""), config, result);
  const PageData data = page_of(root.file(""));
  const Json json = page_json(data, {});
  std::set<int> values;
  for (const auto& column : json["columns"])
    if (column.contains("at")) values.insert(column["at"].get<int>());
  EXPECT_EQ(values, (std::set<int>{15, 20}));
  const Figure* figure = find_figure(data, "axis");
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->columns[2].key, "at");
}

class UnfinishedRuns : public ::testing::Test {
 protected:
  void begin(const ResolvedConfig& config, const char* metric) const {
    RunStore store(root.file(""), config);
    for (int64_t u = 0; u < 10; ++u) store.add({u, "train", {{"loss", 1 + .1 * static_cast<double>(u)}}});
    if (metric != nullptr) store.add({10, "valid", {{metric, .75}, {"loss", .75}}});
    store.write_rows();
  }
  void read() {
    PageSource source({root.file("")}, "report DIR");
    data = make_page(source.read(), {{"runs"}, "", "", true});
  }
  std::set<std::string> names(const char* kind) const {
    std::set<std::string> out;
    if (const Figure* figure = find_figure(data, kind))
      for (const auto& row : figure->rows) out.insert(row[0].text());
    return out;
  }
  TemporaryFolder root;
  PageData data;
};

TEST_F(UnfinishedRuns, AreDrawnByTheirMetric) {
  begin(tracking_config("gla", 1), "mse");
  begin(tracking_config("gla", 2), nullptr);  // not evaluated yet
  begin(small_config("mamba", 1), "accuracy");
  read();
  EXPECT_EQ(names("running_loss"), (std::set<std::string>{"mamba, task 1, seed 1"}));
  EXPECT_EQ(names("running_learning"), (std::set<std::string>{"mamba, task 1, seed 1"}));
  EXPECT_EQ(names("running_squared_loss"),
            (std::set<std::string>{"gla, task tracking, seed 1", "gla, task tracking, seed 2"}));
  EXPECT_EQ(names("running_squared_learning"), (std::set<std::string>{"gla, task tracking, seed 1"}));
  EXPECT_EQ(find_figure(data, "running_squared_learning")->columns[3].title, "squared error on valid");
}

TEST_F(UnfinishedRuns, NotDrawnAreCountedPerLoss) {
  for (int seed = 1; seed <= 20; ++seed) begin(tracking_config("gla", seed), "mse");
  for (int seed = 1; seed <= 10; ++seed) begin(small_config("mamba", seed), "accuracy");
  read();
  size_t drawn = 0;
  for (const auto& [kind, all] : {std::pair{"running_loss", 10U}, {"running_squared_loss", 20U}}) {
    const size_t lines = names(kind).size(), missing = all - lines;
    drawn += lines;
    EXPECT_TRUE(
        find_figure(data, kind)
            ->caption.ends_with(missing > 0 ? "; " + std::to_string(missing) + " more not drawn." : "not finished."))
        << find_figure(data, kind)->caption;
  }
  EXPECT_EQ(drawn, 24U);
}

}  // namespace
}  // namespace sb::test
