#include "report/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "report/labels.h"
#include "synthetic.h"

namespace sb::test {
namespace {

const std::vector<TableFormat> every_format = {TableFormat::text, TableFormat::markdown, TableFormat::csv,
                                               TableFormat::json, TableFormat::latex};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

size_t fields_of(const std::string& csv_line) {
  size_t fields = 1;
  bool quoted = false;
  for (const char c : csv_line) {
    quoted ^= c == '"';
    fields += c == ',' && !quoted;
  }
  return fields;
}

size_t cells_of(const Suite& suite) {
  return rows_of(suite).groups.size();
}

TEST(ShippedTables, KeepTheirAxes) {
  const Suite complexity = shipped("paper/task1_complexity.toml");
  EXPECT_EQ(cells_of(complexity), 7U * 7);
  const std::string text = cell_table(rows_of(complexity), TableFormat::text);
  for (const char* size : {"vocab 21", "vocab 25", "vocab 27", "vocab 31", "vocab 35", "vocab 39", "vocab 41",
                           "ambiguities 40", "depth 40", "density 0.01"})
    EXPECT_TRUE(has(text, size)) << size;
  EXPECT_TRUE(has(text, "Chosen of 6 settings of lr and warmup"));

  const Suite faults = shipped("paper/published_faults.toml");
  EXPECT_EQ(cells_of(faults), faults.runs.size() / 4);
  const std::string faulty = cell_table(rows_of(faults), TableFormat::text);
  for (const char* label : {"test in train", "bf16", "dropout stops", "padding correct", "summed losses", "first lr 0",
                            "double residual", "selects on test", "all 8", "sum_accumulated"})
    EXPECT_TRUE(has(faulty, label)) << label;

  const Suite forgetting = shipped("ablations/fast_forgetting.toml");
  EXPECT_EQ(cells_of(forgetting), 3U * 4);
  const std::string forgets = cell_table(rows_of(forgetting), TableFormat::text);
  for (const char* axis : {"a_min", "0.99", "gap_max 10", "gap_max 50", "gap_max 100"})
    EXPECT_TRUE(has(forgets, axis)) << axis;
}

TEST(ShippedTables, TheQuickTableHasARowAModelAndAColumnATaskAndGap) {
  const auto lines = lines_of(cell_table(rows_of(shipped("quick.toml")), TableFormat::text));
  ASSERT_GT(lines.size(), 13U);
  EXPECT_TRUE(has(lines[1], "task 1"));
  EXPECT_TRUE(has(lines[1], "gap 100"));
  EXPECT_TRUE(lines[3].starts_with("delta_net"));
  EXPECT_TRUE(lines[9].starts_with("transformer"));
  EXPECT_TRUE(lines[11].starts_with("ceiling"));
  const std::string all = cell_table(rows_of(shipped("quick.toml")), TableFormat::text);
  EXPECT_TRUE(has(all, "updates 700 (task 1), 350 (task 2), 1000 (task 3)"));
  EXPECT_TRUE(has(all, "lr 0.004, warmup 50"));
  EXPECT_FALSE(has(all, "±"));
  EXPECT_FALSE(has(all, "paper"));
}

TEST(Table, TheChosenLearningRateIsInEveryFormat) {
  const Rows rows = rows_of(suite_of("[grid]\nmodel.name = [\"gla\", \"mamba2\"]\ntrain.lr = [3e-3, 7e-3]\n"),
                            [](Result& r) { r.valid->accuracy = (r.model == "gla") == (r.lr > 5e-3) ? .9 : .1; });
  for (const auto format : every_format) {
    EXPECT_TRUE(has(cell_table(rows, format), "0.003"));
    EXPECT_TRUE(has(cell_table(rows, format), "0.007"));
  }
}

TEST(Table, NumbersAreRoundedInEveryFormat) {
  const Rows rows = rows_of(suite_of("[grid]\nrun.seed = [1, 2, 3]\n"), [](Result& r) {
    r.test->ceiling->accuracy = 1.0000000000000004;
    r.test->accuracy = 1.0 / 3;
  });
  for (const auto format : every_format) {
    for (const auto& text : {cell_table(rows, format), run_table(rows, format)}) {
      EXPECT_FALSE(has(text, "0000000004")) << text;
      EXPECT_FALSE(has(text, "0.3333333")) << text;
    }
  }
}

TEST(Table, HostileTextIsEscapedInEachFormat) {
  const std::string hostile = "a|b & 50% \"q\", {x}\n\x1b[31m<i>_$";
  auto runs = runs_of(suite_of("[grid]\nrun.seed = [1, 2]\n"));
  runs[0].result.label = hostile;
  runs[1].result.label = "plain";
  const Rows rows = make_rows(std::move(runs), Axes{});
  for (const auto& table : {cell_table, run_table}) {
    EXPECT_TRUE(has(table(rows, TableFormat::text), "\\x0a\\x1b[31m"));
    EXPECT_TRUE(has(table(rows, TableFormat::markdown), "a\\|b \\& 50%"));
    EXPECT_TRUE(has(table(rows, TableFormat::markdown), "\\<i\\>"));
    EXPECT_TRUE(has(table(rows, TableFormat::latex), "a\\textbar{}b \\& 50\\% \\textquotedbl{}q"));
    EXPECT_TRUE(has(table(rows, TableFormat::csv), "\"a|b & 50% \"\"q\"\", {x}\\x0a"));
    const auto json = nlohmann::json::parse(table(rows, TableFormat::json));
    EXPECT_TRUE(has(json.dump(), "50%"));
  }
}

TEST(Table, EveryCsvLineHasTheFieldsOfTheHeader) {
  for (const char* name : {"quick.toml", "paper/published_faults.toml"}) {
    for (const auto& table : {cell_table, run_table}) {
      const auto lines = lines_of(table(rows_of(shipped(name)), TableFormat::csv));
      for (const auto& line : lines) EXPECT_EQ(fields_of(line), fields_of(lines[0])) << line;
    }
  }
}

TEST(Table, JsonTellsCandidatesAndRunsOfEachCell) {
  const auto json = nlohmann::json::parse(
      cell_table(rows_of(suite_of("[grid]\ntrain.lr = [1e-3, 2e-3]\nrun.seed = [1, 2]\n")), TableFormat::json));
  const auto& cell = json.at("cells").at(0);
  EXPECT_EQ(cell.at("run_ids").size(), 2U);
  EXPECT_EQ(cell.at("settings").size(), 2U);
  EXPECT_EQ(cell.at("runs"), 2);
  EXPECT_EQ(cell.at("grammars"), 2);
  EXPECT_EQ(cell.at("sd_over"), "grammars");
  EXPECT_TRUE(cell.at("train.lr").is_number());
  EXPECT_EQ(cell.at("state_size"), 128 * 256);
  EXPECT_FALSE(cell.contains("paper"));
}

TEST(Table, CountsStandInTheCellsWhereTheyDiffer) {
  auto runs = runs_of(suite_of("[grid]\nmodel.name = [\"gla\", \"mamba2\"]\nrun.seed = [1, 2, 3]\n"));
  runs.pop_back();
  const std::string text = cell_table(make_rows(std::move(runs), Axes{}), TableFormat::text);
  EXPECT_TRUE(has(text, "(3)"));
  EXPECT_TRUE(has(text, "(2)"));
}

TEST(Table, DivergedRunsAreCountedInTheCell) {
  const Rows rows =
      rows_of(suite_of("[grid]\nmodel.name = [\"gla\", \"mamba2\"]\nrun.seed = [1, 2, 3]\n"), [](Result& r) {
        if (r.model == "gla" ? r.run_seed == 2 : true) {
          r.status = "diverged";
          r.test.reset();
          r.valid.reset();
        }
      });
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(has(text, ", 1 diverged"));
  EXPECT_TRUE(has(text, "all 3 runs diverged"));
  const auto json = nlohmann::json::parse(cell_table(rows, TableFormat::json));
  EXPECT_EQ(json.at("cells").at(0).at("diverged"), 1);
  EXPECT_EQ(json.at("cells").at(1).at("status"), "diverged");
  EXPECT_TRUE(json.at("cells").at(1).at("mean").is_null());
}

TEST(Table, ACeilingThatDiffersWithinAColumnIsARangeAndABoundIsOne) {
  const Rows rows = rows_of(suite_of("[grid]\nmodel.name = [\"gla\", \"mamba2\"]\n"), [](Result& r) {
    r.test->ceiling->accuracy = r.model == "gla" ? .9 : .95;
    r.test->ceiling->exact = false;
  });
  EXPECT_TRUE(has(cell_table(rows, TableFormat::text), "≤ 0.900–0.950"));
}

TEST(Table, ObjectivePredictShowsTheDivergence) {
  const Rows rows = rows_of(suite_of("[task]\nobjective = \"predict\"\n[grid]\nrun.seed = [1, 2]\n"),
                            [](Result& r) { r.test->kl = .125; });
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(has(text, "KL, nats"));
  EXPECT_TRUE(has(text, "0.1250"));
  EXPECT_TRUE(has(text, "of the next symbol"));
}

TEST(Table, WideTextIsCutIntoPartsThatRepeatTheRowNames) {
  const std::string text = cell_table(rows_of(shipped("paper/task1_complexity.toml")), TableFormat::text);
  size_t headers = 0, widest = 0;
  for (const auto& line : lines_of(text)) {
    headers += line.starts_with("model ");
    if (line.starts_with("gla ")) widest = std::max(widest, line.size());
  }
  EXPECT_GT(headers, 1U);
  EXPECT_LT(widest, 170U);
}

TEST(Table, PerRunHasALineForEveryRunWithItsStanding) {
  const Rows rows = rows_of(suite_of("[grid]\ntrain.lr = [1e-3, 2e-3]\ntrain.seed = [1, 2]\n[run]\nlabel = \"w\"\n"));
  const std::string text = run_table(rows, TableFormat::text);
  for (const auto& run : rows.runs) EXPECT_TRUE(has(text, run.result.run_id));
  for (const char* part : {"label", "grammar.seed", "train.seed", "lr", "warmup", "valid", "test", "ceiling",
                           "fraction", "params", "state", "status", "averaged", "not chosen"})
    EXPECT_TRUE(has(text, part)) << part;
}

TEST(Table, LatexIsABooktabsTable) {
  const std::string text = cell_table(rows_of(shipped("quick.toml")), TableFormat::latex);
  for (const char* part :
       {"\\begin{tabular}{l", "\\toprule", "\\midrule", "\\bottomrule", "\\end{tabular}", "gated\\_delta\\_net"})
    EXPECT_TRUE(has(text, part)) << part;
}

TEST(Table, UnknownFormatIsRefusedWithTheNearestName) {
  EXPECT_TRUE(has(error_line([] { parse_table_format("txt"); }), "text"));
  EXPECT_EQ(error_line([] { parse_table_format("latex"); }), "");
}

TEST(Labels, AValueOfManyDigitsIsToldFromItsNeighbour) {
  const Rows rows = rows_of(suite_of("[grid]\ngrammar.density = [0.10000001, 0.10000002]\n"));
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(has(text, "0.10000001")) << text;
  EXPECT_TRUE(has(text, "0.10000002")) << text;
}

}  // namespace
}  // namespace sb::test
