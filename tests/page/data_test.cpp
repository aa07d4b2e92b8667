// The page shows what the run files hold and what tables make of it.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/number.h"
#include "config/data.h"
#include "made_up.h"
#include "report/folder.h"
#include "report/statistics.h"
#include "report/table.h"
#include "store/seal.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

class ThreeGrammars : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* model : {"gla", "mamba", "transformer"})
      for (const int seed : {1, 2, 3})
        for (const int task : {1, 2})
          finish_small(root.file(""), model, seed, task, task == 2 ? "[eval]\ngaps = [10, 20]\n" : "");
    data = page_of(root.file(""));
  }
  const PageCell& cell(const std::string& model, const std::string& column) const {
    for (const auto& one : data.cells)
      if (series(one.series).name == model && column_of(one.column).name == column) return one;
    throw std::runtime_error("no cell " + model + ", " + column);
  }
  const PageSeries& series(const std::string& id) const {
    return *std::find_if(data.series.begin(), data.series.end(), [&](const auto& one) { return one.id == id; });
  }
  const PageColumn& column_of(const std::string& id) const {
    return *std::find_if(data.columns.begin(), data.columns.end(), [&](const auto& one) { return one.id == id; });
  }
  TemporaryFolder root;
  PageData data;
};

TEST_F(ThreeGrammars, CellsMatchTableExactly) {
  const Json table = Json::parse(cell_table(read_rows(root.file("")), TableFormat::json));
  ASSERT_EQ(table["cells"].size(), 3U * 4U);
  ASSERT_EQ(data.cells.size(), table["cells"].size());
  for (const auto& record : table["cells"]) {
    std::string column = "task " + std::to_string(record["task"].get<int>());
    if (!record["gap"].is_null()) column += ", gap " + std::to_string(record["gap"].get<int>());
    const PageCell& one = cell(record["model"], column);
    EXPECT_EQ(std::round(*one.mean * 1e6) / 1e6, record["mean"].get<double>()) << column;
    EXPECT_EQ(one.mean_text, fixed(*one.mean, 3));
    EXPECT_EQ(one.sd_text, fixed(record["sd"].get<double>(), 3));
    EXPECT_EQ(std::round(*one.fraction * 1e6) / 1e6, record["fraction_of_ceiling"].get<double>());
    EXPECT_EQ(one.runs, record["run_ids"].get<std::vector<std::string>>());
    EXPECT_EQ(one.grammars, 3);
  }
}

TEST_F(ThreeGrammars, IntervalsAndPairsUseStudentTOverGrammars) {
  std::map<std::string, std::map<uint64_t, double>> accuracies;  // task 1
  for (const auto& run : read_rows(root.file("")).runs)
    if (run.result.task == 1) accuracies[run.result.model][run.result.grammar_seed] = run.result.test->accuracy;
  std::vector<double> values, differences;
  for (const auto& [seed, value] : accuracies["gla"]) {
    values.push_back(value);
    differences.push_back(value - accuracies["mamba"][seed]);
  }
  const auto interval = estimate(values).interval(.05);
  const PageCell& one = cell("gla", "task 1");
  EXPECT_EQ(*one.low, std::max(0.0, interval->low));
  EXPECT_EQ(*one.high, std::min(1.0, interval->high));
  const auto paired = estimate(differences);
  const CompareColumn& column = data.compare.columns.front();
  ASSERT_EQ(column.pairs.size(), 3U);
  const PairedDifference& pair = column.pairs.front();
  EXPECT_EQ(series(pair.a).name, "gla");
  EXPECT_EQ(series(pair.b).name, "mamba");
  EXPECT_EQ(pair.n, 3U);
  EXPECT_EQ(pair.difference, paired.mean);
  EXPECT_EQ(*pair.low, paired.interval(.05)->low);
  EXPECT_EQ(*pair.p, *paired.p_against(0));
  EXPECT_EQ(column.grammars, (std::vector<std::string>{"grammar 1", "grammar 2", "grammar 3"}));
  EXPECT_EQ(column.values.front().mean[1], accuracies["gla"][2]);
}

TEST_F(ThreeGrammars, BestOfColumnIsMarkedAndOthersAreTestedAgainstIt) {
  for (const auto& column : data.columns) {
    size_t best = 0;
    double highest = -1, mean_of_best = -2;
    for (const auto& one : data.cells) {
      if (one.column != column.id) continue;
      highest = std::max(highest, *one.mean);
      best += one.best;
      if (one.best) mean_of_best = *one.mean;
      EXPECT_EQ(one.best, !one.versus_best.has_value());
      if (one.versus_best) {
        EXPECT_EQ(one.versus_best->n, 3U);
      }
    }
    EXPECT_EQ(best, 1U);
    EXPECT_EQ(highest, mean_of_best);
  }
}

TEST_F(ThreeGrammars, RunsShowExactDigitsOfFiles) {
  ASSERT_EQ(data.runs.size(), 18U);
  for (const auto& run : data.runs) {
    const std::string text = read_file(root.file(run.id) + "/result.json", 1 << 20);
    EXPECT_NE(text.find("\"accuracy\":" + run.test_text + ","), std::string::npos) << run.test_text;
    EXPECT_NE(text.find("\"numbers_sha256\": \"" + run.digest + "\""), std::string::npos);
    EXPECT_EQ(run.state, "intact");
    EXPECT_EQ(run.standing, "averaged");
    EXPECT_EQ(run.key, run.id);
    EXPECT_EQ(run.wall_text, "12.5 s");
    EXPECT_FALSE(run.href);
    EXPECT_TRUE(std::any_of(run.config.begin(), run.config.end(), [](const ConfigDifference& d) {
      return d.key == "grammar.vocab" && d.value == "6" && d.usual == "41";
    }));
    EXPECT_FALSE(std::any_of(run.config.begin(), run.config.end(),
                             [](const ConfigDifference& d) { return d.key == "train.clip"; }));
  }
  EXPECT_EQ(data.counts.averaged, 18U);
}

TEST_F(ThreeGrammars, PageHasEveryKindOfFigureAndTheirRuns) {
  std::set<std::string> kinds, keys, ids;
  for (const auto& run : data.runs) keys.insert(run.key);
  for (const auto& figure : data.figures) {
    kinds.insert(figure.kind);
    EXPECT_TRUE(ids.insert(figure.id).second) << figure.id;
    EXPECT_FALSE(figure.rows.empty()) << figure.id;
    EXPECT_FALSE(figure.caption.empty() || figure.summary.empty() || figure.height < 50) << figure.id;
    EXPECT_EQ(figure.spec["data"]["name"], "rows");
    for (const auto& row : figure.rows) EXPECT_EQ(row.size(), figure.columns.size()) << figure.id;
    for (const auto& key : figure.runs) EXPECT_TRUE(keys.contains(key)) << figure.id;
    EXPECT_TRUE(figure.section == "summary" || std::any_of(data.sections.begin(), data.sections.end(),
                                                           [&](const auto& s) { return s.id == figure.section; }));
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"overview", "learning", "loss", "gaps", "complexity", "position", "gap_frame",
                                          "since_certain", "entropy", "gates_decay", "selectivity", "decays",
                                          "confusion", "confusion_symbol"}))
      << "all networks here have one size";
}

TEST_F(ThreeGrammars, NGramIsShownWithCellsAndFigures) {
  for (const auto& column : data.columns) {
    EXPECT_EQ(column.n_gram_text, "0.800 (n 4)") << column.name;
    ASSERT_TRUE(column.n_gram);
    EXPECT_NEAR(*column.n_gram, .8, 1e-12);
  }
  for (const auto& cell : data.cells) EXPECT_EQ(cell.n_gram_text, "0.800 (n 4)");
  EXPECT_EQ(std::count(data.caption.begin(), data.caption.end(), kNgramNote), 1);
  std::set<std::string> kinds;
  for (const auto& figure : data.figures)
    for (const auto& row : figure.rows)
      if (row[0].text() == "n-gram") kinds.insert(figure.kind);
  EXPECT_EQ(kinds, (std::set<std::string>{"learning", "gaps", "complexity", "position"}));
}

TEST_F(ThreeGrammars, BreakdownsPoolRunsOfCell) {
  double sum = 0, count = 0;
  for (const auto& run : read_rows(root.file("")).runs)
    if (run.result.task == 1 && run.result.model == "gla") {
      sum += run.result.test->by_gap_frame[2].accuracy * static_cast<double>(run.result.test->by_gap_frame[2].count);
      count += static_cast<double>(run.result.test->by_gap_frame[2].count);
    }
  const Figure& figure = *find_figure(data, "gap_frame");
  bool seen = false;
  for (const auto& row : figure.rows)
    if (row[0].text() == "gla" && row[2].text() == "2") {
      EXPECT_EQ(row[3].text(), plain_number(sum / count));
      EXPECT_EQ(row[4].text(), std::to_string(static_cast<int64_t>(count)));
      seen = true;
    }
  EXPECT_TRUE(seen);
}

TEST_F(ThreeGrammars, SamplesNameStatesAndIncludeEveryModel) {
  ASSERT_EQ(data.samples.size(), 6U);
  const PageSample& sample = data.samples.front();
  EXPECT_EQ(sample.models.size(), 3U);
  EXPECT_EQ(sample.elements[0].symbol, "A");
  EXPECT_EQ(sample.elements[1].state, "#");
  EXPECT_EQ(sample.elements[0].state.front(), 'A') << sample.elements[0].state;
  EXPECT_EQ(sample.elements[1].gap_symbols, (std::vector<std::string>{"·", "C"}));
  EXPECT_EQ(sample.models[0].beliefs[0][0].first, sample.elements[0].state);
  EXPECT_EQ(sample.models[0].beliefs[0][0].second, .75);
}

// Frames of signals are vectors, which results do not hold: the page draws them again.
TEST(Page, SamplesOfVectorsShowNormsAndPauses) {
  TemporaryFolder root;
  const ResolvedConfig config = resolve_text("[task]\nkind = \"signals\"\nlength = 12\n[train]\nupdates = 100\n");
  Batch batch;
  make_data(config.values).task->fill(Split::test, 3, 1, batch);
  Result r = result_of(config);
  SampleRecord sample{3, 12, {}};
  for (size_t e = 0; e < 12; ++e) sample.elements.push_back({-1, batch.state[e], 0, {}, {{batch.state[e], 1}}, {}});
  r.samples = {sample, sample};
  r.samples[1].index = 4;  // with the states of sample 3: nothing true is known of its frames
  finish_run(root.file(""), config, r);
  const PageData data = page_of(root.file(""));
  ASSERT_EQ(data.samples.size(), 2U);
  size_t pauses = 0;
  for (size_t e = 0; e < 12; ++e) {
    double sum = 0;
    for (int c = 0; c < batch.channels; ++c)
      sum += std::pow(batch.dense[e * static_cast<size_t>(batch.channels) + static_cast<size_t>(c)], 2);
    EXPECT_EQ(data.samples[0].elements[e].symbol, fixed(std::sqrt(sum), 2)) << e;
    EXPECT_EQ(data.samples[0].elements[e].paused, batch.gap[e] == 1) << e;
    pauses += batch.gap[e];
    EXPECT_EQ(data.samples[1].elements[e].symbol, "·");
  }
  EXPECT_GT(pauses, 0U);
  const Json json = page_json(data, {});
  EXPECT_TRUE(json["samples"][0]["dense"].get<bool>());
  EXPECT_FALSE(json["samples"][1].contains("dense"));
}

TEST_F(ThreeGrammars, PageListsModelsAndMethodDescribesRuns) {
  EXPECT_EQ(data.models.size(), 3U);
  std::string method;
  for (const auto& part : data.method)
    for (const auto& block : part.blocks) {
      method += block.text;
      for (const auto& row : block.rows)
        for (const auto& value : row) method += " " + value;
    }
  EXPECT_NE(method.find("100 updates"), std::string::npos) << method;
  EXPECT_NE(method.find("cff-version"), std::string::npos);
}

TEST(Page, HasSizeFigureForNetworkOfTwoSizes) {
  TemporaryFolder root;
  for (const int width : {64, 128})
    finish_run(root.file(""), resolve_text("[model]\nname = \"gla\"\nwidth = " + std::to_string(width)),
               rich_result(resolve_text("[model]\nname = \"gla\"\nwidth = " + std::to_string(width))));
  const PageData data = page_of(root.file(""));
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[1].colour, data.series[0].colour);
  EXPECT_NE(data.series[1].dash, data.series[0].dash);
  EXPECT_EQ(data.series[1].name, "gla · width 128");
  EXPECT_TRUE(find_figure(data, "size"));
  EXPECT_FALSE(find_figure(data, "complexity"));
  EXPECT_EQ(data.cells[0].interval_text, "") << "one grammar has no interval";
}

TEST(Page, ShowsDamagedRunsAndKeepsOthers) {
  TemporaryFolder root;
  finish_small(root.file(""), "gla", 1);
  const std::string torn = finish_small(root.file(""), "gla", 2) + "/result.json";
  write_file_atomically(torn, read_file(torn, 1 << 20).substr(0, 100));
  const std::string newer = finish_small(root.file(""), "gla", 3) + "/result.json";
  std::string text = read_file(newer, 1 << 20);
  text.replace(text.find("\"schema\": 3"), 11, "\"schema\": 9");
  text.erase(text.find_last_of(','));
  write_file_atomically(newer, sealed_json(text + "}"));
  const RunStore half(root.file(""), small_config("gla", 4));
  write_file_atomically(half.folder() + "/metrics.jsonl", "{\"update\": 3, \"phase\": \"train\", \"lo");
  Result diverged = result_of(small_config("gla", 5));
  diverged.status = "diverged";
  diverged.test.reset();
  diverged.valid.reset();
  diverged.divergence = DivergenceFigure{7, 1, "loss"};
  finish_run(root.file(""), small_config("gla", 5), diverged);
  fs::create_directories(root.file("copy"));
  fs::copy(root.file(small_config("gla", 1).run_id), root.file("copy/" + small_config("gla", 1).run_id),
           fs::copy_options::recursive);
  const std::string no_metrics = finish_small(root.file(""), "gla", 6);
  fs::remove(no_metrics + "/metrics.jsonl");
  const PageData data = page_of(root.file(""));
  EXPECT_EQ(data.counts.found, 7U);
  EXPECT_EQ(data.counts.averaged, 1U);
  EXPECT_EQ(data.counts.damaged, 2U);
  EXPECT_EQ(data.counts.other_version, 1U);
  EXPECT_EQ(data.counts.unfinished, 1U);
  EXPECT_EQ(data.counts.copies, 1U);
  EXPECT_EQ(data.counts.diverged, 1U);
  std::multiset<std::string> states;
  for (const auto& run : data.runs) states.insert(run.state);
  EXPECT_EQ(states,
            (std::multiset<std::string>{"intact", "intact", "damaged", "damaged", "newer", "unfinished", "copy"}));
  for (const auto& run : data.runs) {
    if (run.state == "damaged" || run.state == "newer") {
      EXPECT_FALSE(run.problems.empty()) << run.folder;
    }
    if (run.standing == "diverged") {
      EXPECT_EQ(run.divergence_text, "at update 7, layer 1, loss");
    }
    if (run.state == "unfinished") {
      EXPECT_EQ(run.problems.size(), 1U) << "its metrics are torn";
    }
  }
  EXPECT_FALSE(data.warnings.empty());
  const auto& marks = data.cells.front().marks;
  const auto marked = [&](const char* kind) {
    return std::any_of(marks.begin(), marks.end(), [&](const PageMark& mark) { return mark.kind == kind; });
  };
  EXPECT_TRUE(marked("missing") && marked("diverged"));
  EXPECT_GT(html_of(data).size(), 1000U);
}

TEST(Page, IsWrittenForUnfinishedRunsOnly) {
  TemporaryFolder root;
  const RunStore begun(root.file(""), small_config("gla", 1));
  PageSource source({root.file("")}, "report DIR");
  const PageData data = make_page(source.read(), {{"x"}, "", "", true});
  EXPECT_TRUE(data.cells.empty());
  ASSERT_EQ(data.runs.size(), 1U);
  ASSERT_EQ(data.board.size(), 1U);
  EXPECT_EQ(data.board[0].updates, 100);
  EXPECT_EQ(data.board[0].state, "running") << "this process holds its lock";
  EXPECT_NO_THROW(html_of(data));
}

TEST(Page, LinksAreRelativeToThePage) {
  TemporaryFolder root;
  finish_small(root.file("a b&\"c"), "gla", 1);
  const PageData data = page_of(root.file(""), root.file("pages"));
  ASSERT_TRUE(data.runs[0].href);
  EXPECT_EQ(*data.runs[0].href, "./../a%20b%26%22c/" + data.runs[0].id + "/");
}

}  // namespace
}  // namespace sb::test
