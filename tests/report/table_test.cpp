#include "report/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../base/expect.h"
#include "base/file.h"
#include "base/number.h"
#include "report/labels.h"
#include "report/layout.h"
#include "report/names.h"
#include "report/sheet.h"
#include "synthetic.h"

namespace sb::test {
namespace {

const std::vector<TableFormat> every_format = {TableFormat::text, TableFormat::markdown, TableFormat::csv,
                                               TableFormat::json, TableFormat::latex};

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
  EXPECT_TRUE(has(text, "vocab 21", "vocab 25", "vocab 27", "vocab 31", "vocab 35", "vocab 39", "vocab 41",
                  "ambiguities 40", "depth 40", "density 0.01", "Chosen from 6 settings of lr and warmup"));

  const Suite faults = shipped("paper/published_faults.toml");
  EXPECT_EQ(cells_of(faults), faults.runs.size() / 4);
  const std::string faulty = cell_table(rows_of(faults), TableFormat::text);
  EXPECT_TRUE(has(faulty, "bf16", "dropout until 78", "summed losses", "first lr 0", "double residual",
                  "selects on test", "published", "sum_accumulated"));

  const Suite forgetting = shipped("ablations/fast_forgetting.toml");
  EXPECT_EQ(cells_of(forgetting), 3U * 4);
  const std::string forgets = cell_table(rows_of(forgetting), TableFormat::text);
  EXPECT_TRUE(has(forgets, "a_min", "0.99", "gap_max 10", "gap_max 50", "gap_max 100"));
}

TEST(ShippedTables, QuickTableHasRowPerModelAndColumnPerTaskAndGap) {
  const auto lines = lines_of(cell_table(rows_of(shipped("quick.toml")), TableFormat::text));
  ASSERT_GT(lines.size(), 13U);
  EXPECT_TRUE(has(lines[1], "task 1", "gap 100"));
  EXPECT_TRUE(lines[3].starts_with("delta_net"));
  EXPECT_TRUE(lines[9].starts_with("transformer"));
  EXPECT_TRUE(lines[11].starts_with("ceiling"));
  const std::string all = cell_table(rows_of(shipped("quick.toml")), TableFormat::text);
  EXPECT_TRUE(has(all, "lr 0.01, warmup 40"));
  EXPECT_TRUE(lacks(all, "±", "paper"));
}

TEST(Table, EveryFormatShowsSelectedLearningRate) {
  const Rows rows = rows_of(suite_of("[grid]\nmodel.name = [\"gla\", \"mamba2\"]\ntrain.lr = [3e-3, 7e-3]\n"),
                            [](Result& r) { r.valid->accuracy = (r.model == "gla") == (r.lr > 5e-3) ? .9 : .1; });
  for (const auto format : every_format) {
    EXPECT_TRUE(has(cell_table(rows, format), "0.003", "0.007"));
  }
}

TEST(Table, NumbersAreRoundedInEveryFormat) {
  const Rows rows = rows_of(suite_of("[grid]\nrun.seed = [1, 2, 3]\n"), [](Result& r) {
    r.test->ceiling->accuracy = 1.0000000000000004;
    r.test->accuracy = 1.0 / 3;
  });
  for (const auto format : every_format) {
    for (const auto& text : {cell_table(rows, format), run_table(rows, format)}) {
      EXPECT_TRUE(lacks(text, "0000000004", "0.3333333"));
    }
  }
}

TEST(Table, PlusMinusIsHalfOfThe95PercentInterval) {
  const Rows rows = rows_of(suite_of("[grid]\nrun.seed = [1, 2, 3]\n"),
                            [](Result& r) { r.test->accuracy = .4 + .1 * static_cast<double>(r.run_seed); });
  const double half = 4.302652729911275 * .1 / std::sqrt(3.0);  // Student's t with two degrees of freedom
  EXPECT_TRUE(has(cell_table(rows, TableFormat::text), "0.600 ± " + fixed(half, 3),
                  "mean ± half of the 95 % interval over 3 grammars"));
  const auto cell = nlohmann::json::parse(cell_table(rows, TableFormat::json)).at("cells").at(0);
  EXPECT_NEAR(cell.at("ci95_low").get<double>(), .6 - half, 1e-6);
  EXPECT_NEAR(cell.at("ci95_high").get<double>(), .6 + half, 1e-6);
  EXPECT_NEAR(cell.at("sd").get<double>(), .1, 1e-6);
  const Rows wide = rows_of(suite_of("[grid]\nrun.seed = [1, 2]\n"),
                            [](Result& r) { r.test->accuracy = r.run_seed == 1 ? .9 : .98; });
  EXPECT_TRUE(has(cell_table(wide, TableFormat::text), "0.940 [0.432, 1.000]")) << "cut at 1: both ends";
}

TEST(Table, StateSizeIsADashIfUnknown) {
  Result outside;
  outside.model = "mine (external)";
  EXPECT_TRUE(is_external(outside));
  outside.model = "transformer";
  EXPECT_FALSE(is_external(outside));
  const auto text = [](const std::string& model) {
    const Rows rows = rows_of(suite_of("[grid]\nrun.seed = [1]\n"), [&](Result& r) {
      r.model = model;
      r.config["model.name"] = "\"" + model + "\"";
      r.state_size.reset();
    });
    return cell_table(rows, TableFormat::text);
  };
  EXPECT_TRUE(has(text("transformer"), "grows"));
  EXPECT_TRUE(lacks(text("mine (external)"), "grows"));
}

TEST(Table, NotesOmitWhatColumnImpliesAndJsonListsAll) {
  const Rows rows = rows_of(shipped("quick.toml"));
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(lacks(text, "updates", "valid_samples", "test_samples", "grid_samples", "eval.batch", "every 0",
                    "test_gap_start"));
  const auto json = nlohmann::json::parse(cell_table(rows, TableFormat::json));
  EXPECT_EQ(json.at("everywhere").at("eval.valid_samples"), 40);
  const std::map<int, std::pair<int, int>> by_task = {{1, {380, 200}}, {2, {200, 100}}, {3, {540, 200}}};
  for (const auto& cell : json.at("cells")) {
    const auto& [updates, samples] = by_task.at(cell.at("task").get<int>());
    EXPECT_EQ(cell.at("train.updates"), updates);
    EXPECT_EQ(cell.at("eval.test_samples"), samples);
  }
}

std::set<std::string> row_names_of(const std::string& suite) {
  const Rows rows = rows_of(suite_of(suite));
  const Labels labels = make_labels(rows.groups);
  std::set<std::string> out;
  for (const auto& group : rows.groups) out.insert(labels.row_name(group));
  return out;
}

TEST(RowNames, AreModelAndDistinguishingKeys) {
  using Names = std::set<std::string>;
  EXPECT_EQ(row_names_of("[grid]\nmodel.name = ['gla', 'mamba2']\n"), (Names{"gla", "mamba2"}));
  EXPECT_EQ(row_names_of("[model]\nname = 'gla'\n[grid]\nmodel.width = [64, 128]\n"),
            (Names{"gla · width 64", "gla · width 128"}));
  EXPECT_EQ(row_names_of("[model]\nname = 'gla'\n[grid]\nhow = [{train.precision = 'fp32', model.layers = 2}, "
                         "{train.precision = 'fp64', model.layers = 3}]\n"),
            (Names{"gla · layers 2", "gla · layers 3"}))
      << "one label is enough";
  EXPECT_EQ(row_names_of("[model]\nname = 'gla'\n[grid]\ntrain.precision = ['fp32', 'fp64']\n"),
            (Names{"gla · fp32", "gla · fp64"}));
  EXPECT_EQ(row_names_of("[model]\nname = 'delta_net'\n[quirks]\nfirst_lr_zero = true\n[grid]\n"
                         "quirks.delta_bf16 = [false, true]\n"),
            (Names{"delta_net", "delta_net · delta_bf16"}))
      << "a quirk that all have tells nothing";
  EXPECT_EQ(row_names_of("[grid]\nhow = [{model.name = 'gla', model.width = 64}, {model.name = 'gla', model.width = "
                         "128}, {model.name = 'mamba2', model.width = 64}]\n"),
            (Names{"gla · width 64", "gla · width 128", "mamba2"}))
      << "a model with one row needs no label";
}

TEST(RowNames, ScaleIsOneWordInColumnHeading) {
  const std::string sizes = "vocab = 21\nambiguities = 20\ndepth = 20\n";
  EXPECT_TRUE(has(read_file(SB_SOURCE_DIR "/configs/scales/small.toml", 1 << 16), "[grammar]\n" + sizes));
  EXPECT_EQ(scale_name(rows_of(suite_of("[grammar]\n" + sizes)).groups.at(0)), "small");
  for (const auto& [file, scale] : {std::pair("quick.toml", "quick"), {"paper/main_table.toml", "paper"}})
    for (const auto& group : rows_of(shipped(file)).groups) EXPECT_EQ(scale_name(group), scale);
  auto runs = runs_of(shipped("quick.toml"));
  for (auto& run : runs_of(shipped("paper/main_table.toml"))) runs.push_back(std::move(run));
  const Rows rows = make_rows(std::move(runs), Axes{});
  const Labels labels = make_labels(rows.groups);
  std::set<std::string> headings;
  for (const auto& group : rows.groups) {
    const auto lines = labels.column_lines(group);
    ASSERT_GE(lines.size(), 2U);
    headings.insert(lines[1]);
    EXPECT_EQ(lines[1], scale_name(group));
    for (const auto& line : lines) EXPECT_FALSE(line.starts_with("vocab") || line.starts_with("length")) << line;
  }
  EXPECT_EQ(headings, (std::set<std::string>{"quick", "paper"}));
  EXPECT_EQ(scale_name(rows_of(suite_of("[grammar]\nvocab = 11\nambiguities = 10\ndepth = 10\n")).groups.at(0)), "");
}

TEST(Table, HostileTextIsEscapedInEachFormat) {
  const std::string hostile = "a|b & 50% \"q\", {x}\n\x1b[31m<i>_$";
  auto runs = runs_of(suite_of("[grid]\nrun.seed = [1, 2]\n"));
  runs[0].result.label = hostile;
  runs[1].result.label = "plain";
  const Rows rows = make_rows(std::move(runs), Axes{});
  for (const auto& table : {cell_table, run_table}) {
    EXPECT_TRUE(has(table(rows, TableFormat::text), "\\x0a\\x1b[31m"));
    EXPECT_TRUE(has(table(rows, TableFormat::markdown), "a\\|b \\& 50%", "\\<i\\>"));
    EXPECT_TRUE(has(table(rows, TableFormat::latex), "a\\textbar{}b \\& 50\\% \\textquotedbl{}q"));
    EXPECT_TRUE(has(table(rows, TableFormat::csv), "\"a|b & 50% \"\"q\"\", {x}\\x0a"));
    const auto json = nlohmann::json::parse(table(rows, TableFormat::json));
    EXPECT_TRUE(has(json.dump(), "50%"));
  }
}

TEST(Table, CsvEscapesSpreadsheetFormulas) {
  auto runs = runs_of(suite_of("[grid]\nrun.seed = [1, 2]\n"));
  runs[0].result.label = "=HYPERLINK(1)";
  runs[1].result.label = "-1+cmd";
  const Rows rows = make_rows(std::move(runs), Axes{});
  for (const auto& table : {cell_table, run_table}) {
    const std::string csv = table(rows, TableFormat::csv);
    EXPECT_TRUE(has(csv, ",\"'=HYPERLINK(1)\",", ",\"'-1+cmd\","));
  }
}

TEST(Table, NamesRunsAboveTheirCeiling) {
  auto runs = runs_of(suite_of("[grid]\nrun.seed = [1, 2]\n"));
  ASSERT_TRUE(runs[0].result.test && runs[0].result.test->ceiling);
  const std::string id = runs[0].result.run_id;
  for (auto& run : runs) {
    run.result.test->samples = run.result.test->ceiling->samples = 100;
    run.result.test->stderr_ = run.result.test->ceiling->stderr_ = .001;
    run.result.test->ceiling->accuracy = run.result.test->ceiling->upper_bound = .9;
    run.result.test->accuracy = .8;
  }
  const auto said = [&](double accuracy, TableFormat format) {
    auto changed = runs;
    changed[0].result.test->accuracy = accuracy;
    return cell_table(make_rows(std::move(changed), Axes{}), format);
  };
  const std::string line = "is above its ceiling 0.9000 by more than 4 standard errors (" + id + ")";
  for (const TableFormat format : {TableFormat::text, TableFormat::json}) {
    EXPECT_TRUE(has(said(.95, format), line));
    EXPECT_TRUE(lacks(said(.905, format), "is above its ceiling"));
  }
}

TEST(Table, EveryCsvLineHasAsManyFieldsAsHeader) {
  for (const char* name : {"quick.toml", "paper/published_faults.toml"}) {
    for (const auto& table : {cell_table, run_table}) {
      const auto lines = lines_of(table(rows_of(shipped(name)), TableFormat::csv));
      for (const auto& line : lines) EXPECT_EQ(fields_of(line), fields_of(lines[0])) << line;
    }
  }
}

TEST(Table, JsonListsCandidatesAndRunsOfEachCell) {
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

TEST(Table, ShowsRunCountsInCellsIfTheyDiffer) {
  auto runs = runs_of(suite_of("[grid]\nmodel.name = [\"gla\", \"mamba2\"]\nrun.seed = [1, 2, 3]\n"));
  runs.pop_back();
  const std::string text = cell_table(make_rows(std::move(runs), Axes{}), TableFormat::text);
  EXPECT_TRUE(has(text, "(3)", "(2)"));
}

TEST(Table, CountsDivergedRunsInCell) {
  const Rows rows =
      rows_of(suite_of("[grid]\nmodel.name = [\"gla\", \"mamba2\"]\nrun.seed = [1, 2, 3]\n"), [](Result& r) {
        if (r.model == "gla" ? r.run_seed == 2 : true) {
          r.status = "diverged";
          r.test.reset();
          r.valid.reset();
        }
      });
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(has(text, ", 1 diverged", "all 3 runs diverged"));
  const auto json = nlohmann::json::parse(cell_table(rows, TableFormat::json));
  EXPECT_EQ(json.at("cells").at(0).at("diverged"), 1);
  EXPECT_EQ(json.at("cells").at(1).at("status"), "diverged");
  EXPECT_TRUE(json.at("cells").at(1).at("mean").is_null());
}

TEST(Table, ShowsCeilingRangeAndMarksUpperBounds) {
  const Rows rows = rows_of(suite_of("[grid]\nmodel.name = [\"gla\", \"mamba2\"]\n"), [](Result& r) {
    r.test->ceiling->accuracy = .8;
    r.test->ceiling->upper_bound = r.model == "gla" ? .9 : .95;
    r.test->ceiling->exact = false;
  });
  EXPECT_TRUE(has(cell_table(rows, TableFormat::text), "≤ 0.900–0.950"));
  EXPECT_TRUE(has(run_table(rows, TableFormat::text), "≤ 0.900"));
  for (const auto& [table, name] : {std::make_pair(&cell_table, "cells"), std::make_pair(&run_table, "runs")}) {
    const auto record = nlohmann::json::parse(table(rows, TableFormat::json)).at(name).at(0);
    EXPECT_EQ(record.at("ceiling"), .8);
    EXPECT_EQ(record.at("upper_bound"), .9);
    EXPECT_TRUE(record.at("fraction_of_ceiling").is_null());
  }
}

TEST(Table, EveryFormatNamesCommonNonDefaultSettings) {
  const Rows rows =
      rows_of(suite_of("[grid]\nrun.seed = [1, 2]\n[task]\nnoise = 0.25\nlength = 77\n[model]\nname = "
                       "\"mamba2\"\nlayers = 3\n[quirks]\nfirst_lr_zero = true\n"));
  for (const auto& table : {cell_table, run_table}) {
    for (const auto format : {TableFormat::text, TableFormat::markdown, TableFormat::latex}) {
      const std::string text = table(rows, format);
      EXPECT_TRUE(has(text, "Everywhere: ", "quirks first_lr_zero", "noise 0.25", "length 77", "layers 3"));
      EXPECT_TRUE(lacks(text, "batch "));
    }
    const std::string csv = table(rows, TableFormat::csv);
    EXPECT_TRUE(has(csv, ",quirks,", ",task.noise,", ",task.length,", "model.layers", ",first_lr_zero,"));
    const auto json = nlohmann::json::parse(table(rows, TableFormat::json));
    EXPECT_EQ(json.at("everywhere").at("quirks"), "first_lr_zero");
    EXPECT_EQ(json.at("everywhere").at("task.length"), 77);
  }
  const Rows plain = rows_of(suite_of("[grid]\nrun.seed = [1, 2]\n"));
  EXPECT_TRUE(has(cell_table(plain, TableFormat::csv), ",quirks,"));
  EXPECT_TRUE(lacks(run_table(plain, TableFormat::text), "Everywhere"));
  EXPECT_TRUE(lacks(cell_table(plain, TableFormat::text), "quirks"));
}

TEST(Table, CaptionNamesAveragedAxes) {
  const std::string grid = "[grid]\ntask.noise = [0.0, 0.1]\n";
  const Rows rows = rows_of(suite_of("[suite]\naverage = [\"task.noise\"]\n" + grid));
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(has(text, "mean of 2 runs ± half of the 95 % interval over task.noise. Also averaged over task.noise."));
  EXPECT_TRUE(lacks(text, "seeds"));
  EXPECT_TRUE(has(cell_table(rows, TableFormat::csv), ",task.noise,"));
  EXPECT_TRUE(lacks(cell_table(rows_of(suite_of(grid)), TableFormat::text), "Also averaged over"));
}

TEST(Table, CaptionNamesSelectionCriterion) {
  const std::string grid = "[grid]\ntrain.lr = [1e-3, 2e-3]\n";
  const auto text = [](const std::string& suite) { return cell_table(rows_of(suite_of(suite)), TableFormat::text); };
  EXPECT_TRUE(has(text(grid), "by mean valid accuracy over"));
  const std::string faulty = text("[quirks]\nselect_on_test = true\n" + grid);
  EXPECT_TRUE(has(faulty, "by mean accuracy on the test set (select_on_test) over"));
  EXPECT_TRUE(lacks(faulty, "valid accuracy"));
  EXPECT_TRUE(has(text(grid + "quirks.select_on_test = [false, true]\n"),
                  "by mean valid accuracy, or on the test set if select_on_test is on, over"));
}

TEST(Table, UnfinishedSuiteNamesMissingRunsFirst) {
  const Suite suite = suite_of("[grid]\nmodel.name = [\"gla\", \"mamba2\"]\ntrain.lr = [1e-3, 2e-3]\n");
  auto runs = runs_of(suite);
  runs.resize(3);
  const MissingRun gone = {suite.runs[3].run_id, config_map(suite.runs[3].canonical)};
  const Rows rows = make_rows(std::move(runs), Axes{}, {}, {gone});
  for (const auto& table : {cell_table, run_table}) {
    EXPECT_EQ(lines_of(table(rows, TableFormat::text))[0], "3 of 4 runs: 1 is not finished.");
    EXPECT_EQ(lines_of(table(rows, TableFormat::text))[1], "Not finished: mamba2, task 0, lr 0.002, seed 1.");
    EXPECT_EQ(lines_of(table(rows, TableFormat::markdown))[0], "3 of 4 runs: 1 is not finished.");
    EXPECT_EQ(lines_of(table(rows, TableFormat::latex))[0], "% 3 of 4 runs: 1 is not finished.");
    const auto json = nlohmann::json::parse(table(rows, TableFormat::json));
    EXPECT_EQ(json.at("finished"), 3);
    EXPECT_EQ(json.at("missing").at(0), "mamba2, task 0, lr 0.002, seed 1");
  }
}

// How a table names the second run of the suite if only the first is finished.
std::vector<std::string> second_run_missing(const std::string& text) {
  const Suite suite = suite_of(text);
  auto runs = runs_of(suite);
  runs.resize(1);
  return make_rows(std::move(runs), Axes{}, {}, {{"x", config_map(suite.runs[1].canonical)}}).missing;
}

TEST(Table, MissingRunIsNotNamedBySwitchesOfItsModelOnly) {
  EXPECT_EQ(second_run_missing("[grid]\nmodel.name = ['gla', 'mamba2']\n[[override]]\nwhen = {model.name = 'mamba2'}\n"
                               "set = {model.d_state = 16, model.heads = 2}\n"),
            std::vector<std::string>{"mamba2, task 0, seed 1"});
}

TEST(Table, MissingRunIsNotNamedBySettingsOfItsTaskOnly) {
  EXPECT_EQ(second_run_missing("[eval]\nbatch = 20\n[grid]\ntask.number = [1, 3]\n[[override]]\n"
                               "when = {task.number = 3}\nset = {train.updates = 100}\n"),
            std::vector<std::string>{"gated_delta_net, task 3, seed 1"});
}

TEST(Table, ListsIneligibleSettingsDirectlyBelow) {
  auto runs = runs_of(suite_of("[grid]\ntrain.lr = [1e-3, 2e-3]\nrun.seed = [1, 2]\n"));
  runs.pop_back();
  const auto lines = lines_of(cell_table(make_rows(std::move(runs), Axes{}, {"another"}), TableFormat::text));
  const auto foot =
      std::find_if(lines.begin(), lines.end(), [](const auto& line) { return line.starts_with("chance"); });
  ASSERT_LT(foot + 1, lines.end());
  EXPECT_TRUE(has(foot[1], "lr 0.002 warmup 476 not eligible: lacks seed 2; its mean accuracy"));
  EXPECT_EQ(lines.back(), "note: another");
}

// The row of the foot that begins like this; empty: there is none.
std::string foot_row(const std::string& text, const std::string& name) {
  for (const auto& line : lines_of(text))
    if (line.starts_with(name)) return line;
  return "";
}

TEST(Table, ShowsTheNGramAboveTheCeiling) {
  const Suite suite = suite_of("[eval]\ngaps = [20]\n[grid]\ntask.number = [2, 3]\nrun.seed = [1, 2]\n");
  const Rows rows = rows_of(suite, [](Result& r) {
    const double base = r.task == 3 ? .5 : .7;
    const int n = r.task == 3 ? 4 : 6;
    r.baselines = BaselineFigures{.01, {}, std::vector<double>(8, .1), n, .001, 1000, 100};
    r.baselines->n_gram[static_cast<size_t>(n) - 1] = base + .01 * static_cast<double>(r.grammar_seed);
  });
  for (const auto format : {TableFormat::text, TableFormat::markdown, TableFormat::latex}) {
    const std::string table = cell_table(rows, format);
    const size_t n_gram = table.find(format == TableFormat::latex ? "n-gram 4--6" : "n-gram 4–6"),
                 ceiling = table.find("ceiling");
    ASSERT_NE(n_gram, std::string::npos) << table;
    EXPECT_LT(n_gram, ceiling) << table;
    EXPECT_TRUE(has(table, "tasks 1, 2 and 4 share it"));
  }
  const auto json = nlohmann::json::parse(cell_table(rows, TableFormat::json));
  size_t seen = 0;
  for (const auto& cell : json.at("cells")) {
    const bool wrong_symbols = cell.at("task") == 3;
    if (wrong_symbols && !cell.at("gap").is_null()) {
      EXPECT_TRUE(cell.at("n_gram").is_null()) << "longer gaps of wrong symbols are other contexts: " << cell;
      EXPECT_TRUE(cell.at("n").is_null());
    } else {
      EXPECT_NEAR(cell.at("n_gram"), wrong_symbols ? .515 : .715, 1e-9) << cell;
      EXPECT_EQ(cell.at("n"), wrong_symbols ? "4" : "6");
    }
    ++seen;
  }
  EXPECT_EQ(seen, 4U);
  const auto runs = nlohmann::json::parse(run_table(rows, TableFormat::json)).at("runs");
  EXPECT_NEAR(runs.at(0).at("n_gram"), .71, 1e-9);
  EXPECT_EQ(runs.at(0).at("n"), 6);
  EXPECT_TRUE(has(run_table(rows, TableFormat::text), "0.710 (n 6)"));
}

Rows tracking_rows(const std::string& grid) {
  return rows_of(suite_of("[task]\nkind = 'tracking'\n[grid]\n" + grid), [](Result& r) {
    r.test->mse = .4;
    r.test->ceiling->mse = .25;
    if (r.valid) r.valid->mse = .4;
  });
}

TEST(Table, LimitOfSquaredErrorsIsABound) {
  const Rows rows = tracking_rows("train.lr = [1e-3, 2e-3]\nrun.seed = [1, 2]\n");
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(foot_row(text, "bound").ends_with("≥ 0.250")) << text;
  EXPECT_TRUE(has(text, "Test squared error: ", "by mean valid squared error over"));
  for (const char* word : {"ceiling", "chance", "accuracy"}) EXPECT_EQ(text.find(word), std::string::npos) << text;
  const std::string runs = run_table(rows, TableFormat::text);
  EXPECT_TRUE(has(runs, "bound")) << runs;
  for (const char* word : {"ceiling", "fraction"}) EXPECT_EQ(runs.find(word), std::string::npos) << runs;
}

TEST(Table, ColumnsShowOnlyKeysOfTheirKind) {
  const Rows rows =
      rows_of(suite_of("[grid]\nwhich = [{task.kind = 'word_problem', task.machine = 'parity'}, {task.kind = "
                       "'word_problem', task.machine = 'a5'}, {task.kind = 'dyck', eval.every = 7}]\n"));
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(has(text, "machine parity", "machine a5", "task dyck"));
  EXPECT_EQ(text.find("machine –"), std::string::npos) << text;
  EXPECT_EQ(text.find("every"), std::string::npos) << text;
}

TEST(Table, ScheduleAndStretchAreShownEvenIfTheTaskDecidesThem) {
  const Rows rows = rows_of(suite_of(
      "[grid]\nwhich = [{task.kind = 'word_problem', task.reveal = 0.1, train.schedule = {task.reveal = {from = 0.5, "
      "over = 0.8}}}, {task.kind = 'dyck'}]\n"));
  EXPECT_TRUE(has(cell_table(rows, TableFormat::text), "schedule"));
}

TEST(Table, OmitsNGramForEarlierResults) {
  const Rows rows = rows_of(suite_of("[grid]\nrun.seed = [1, 2]\n"), [](Result& r) {
    r.baselines = BaselineFigures{.01, .98, {.1, .2, .3, .4}, {}, {}, 1000, 50};
  });
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_EQ(foot_row(text, "n-gram"), "") << text;
  EXPECT_NE(foot_row(text, "ceiling"), "") << text;
  EXPECT_TRUE(nlohmann::json::parse(cell_table(rows, TableFormat::json)).at("cells").at(0).at("n_gram").is_null());
}

TEST(Table, SavedEvaluationsShowSplitAndSamples) {
  auto runs = runs_of(suite_of("[grid]\ntrain.lr = [1e-3, 2e-3]\n"));
  for (auto& run : runs) run.evaluations.push_back(measured("valid", .125, .9, 321));
  const Rows rows = make_rows(std::move(runs), Axes{});
  const auto json = nlohmann::json::parse(cell_table(rows, TableFormat::json));
  EXPECT_EQ(json.at("cells").at(0).at("split"), "test");
  EXPECT_EQ(json.at("cells").at(0).at("samples"), 1000);
  EXPECT_EQ(json.at("cells").at(1).at("split"), "valid");
  EXPECT_EQ(json.at("cells").at(1).at("samples"), 321);
  EXPECT_TRUE(has(cell_table(rows, TableFormat::csv), ",valid,321,"));
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(has(text, "\nAccuracy: "));
  EXPECT_TRUE(lacks(text, "Test accuracy"));
  EXPECT_TRUE(has(lines_of(text)[1], "test")) << text;
  for (const auto format : every_format) EXPECT_TRUE(has(run_table(rows, format), "valid, 321 samples"));
  EXPECT_EQ(nlohmann::json::parse(run_table(rows, TableFormat::json)).at("runs").at(1).at("valid, 321 samples"), .125);
}

TEST(Table, ShowsDivergenceWithItsBound) {
  const Rows rows =
      rows_of(suite_of("[task]\nobjective = \"predict\"\n[grid]\nmodel.name = [\"gla\", \"mamba2\"]\n"), [](Result& r) {
        r.test->kl = .125;
        r.test->ceiling->kl = r.model == "gla" ? .03125 : .0625;
      });
  for (const auto format : {TableFormat::text, TableFormat::markdown, TableFormat::latex}) {
    const std::string least = format == TableFormat::latex ? "$\\geq$" : "≥";
    const std::string to = format == TableFormat::latex ? "--" : "–";
    EXPECT_TRUE(has(cell_table(rows, format), least + " 0.0312" + to + "0.0625"));
    EXPECT_TRUE(has(run_table(rows, format), least + " 0.0625"));
    EXPECT_TRUE(has(cell_table(rows, format), "KL, nats", "0.1250", "of the next symbol"));
  }
  for (const auto& [table, name] : {std::make_pair(&cell_table, "cells"), std::make_pair(&run_table, "runs")}) {
    EXPECT_TRUE(has(table(rows, TableFormat::csv), ",kl,kl_bound,"));
    const auto record = nlohmann::json::parse(table(rows, TableFormat::json)).at(name).at(1);
    EXPECT_EQ(record.at("kl"), .125);
    EXPECT_EQ(record.at("kl_bound"), .0625);
  }
}

TEST(Table, GapColumnsShowSamplesIfOthersDo) {
  auto runs = runs_of(suite_of("[grid]\nrun.seed = [1, 2]\n[task]\nnumber = 2\n[eval]\ngaps = [20]\n"));
  for (auto& run : runs) run.evaluations.push_back(measured("valid", .125, .9, 321));
  const Rows rows = make_rows(std::move(runs), Axes{});
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(has(text, "test, 1000 samples", "test, 100 samples"));
  const auto run = nlohmann::json::parse(run_table(rows, TableFormat::json)).at("runs").at(0);
  EXPECT_TRUE(has(run_table(rows, TableFormat::text), "gap 20, test, 100 samples"));
  EXPECT_EQ(run.at("gap 20, samples"), 100);
  EXPECT_EQ(run.at("test_samples"), 1000);
}

TEST(Table, SavedEvaluationWithGridSamplesShowsSplitAndSamples) {
  auto runs = runs_of(suite_of("[task]\nnumber = 1\n[eval]\ntest_samples = 40\n[grid]\nrun.seed = [1, 2]\n"));
  const Rows before = make_rows(runs, Axes{});
  EXPECT_TRUE(lacks(cell_table(before, TableFormat::text), " samples"));
  EXPECT_TRUE(lacks(run_table(before, TableFormat::text), " samples"));
  for (auto& run : runs) {
    run.evaluations.push_back(measured("test", .25, .9, 1000));
    run.evaluations.back().at = 5;
  }
  const Rows rows = make_rows(std::move(runs), Axes{});
  for (const auto format : {TableFormat::text, TableFormat::markdown, TableFormat::latex}) {
    const std::string text = cell_table(rows, format);
    EXPECT_TRUE(has(text, "test, 1000 samples", "test, 40 samples"));
    EXPECT_TRUE(has(run_table(rows, format), "gap 5, test, 1000 samples", "test, 40 samples"));
  }
}

TEST(Table, ColumnListsDifferentSampleCounts) {
  auto runs =
      runs_of(suite_of("[grid]\nwhich = [{model.name = 'gla', eval.test_samples = 40}, {model.name = 'mamba2'}]\n"));
  for (auto& run : runs) run.evaluations.push_back(measured("valid", .125, .9, 321));
  const std::string text = cell_table(make_rows(std::move(runs), Axes{}), TableFormat::text);
  EXPECT_TRUE(has(text, "test, 40 or 1000 samples"));
}

TEST(Table, FirstLineCountsRunsOutsideCells) {
  const Suite suite = suite_of("[grid]\nmodel.name = [\"gla\", \"mamba2\"]\ntrain.lr = [1e-3, 2e-3]\n");
  auto runs = runs_of(suite);
  runs[1].result.test.reset();
  runs.resize(2);
  const auto gone = [&](size_t i, MissingRun::Why why) {
    return MissingRun{suite.runs[i].run_id, config_map(suite.runs[i].canonical), why};
  };
  const Rows rows = make_rows(std::move(runs), Axes{}, {},
                              {gone(2, MissingRun::Why::damaged),
                               gone(3, MissingRun::Why::unfinished),
                               {"elsewhere", {}, MissingRun::Why::other_schema}});
  for (const auto& table : {cell_table, run_table}) {
    const auto lines = lines_of(table(rows, TableFormat::text));
    EXPECT_EQ(
        lines[0],
        "1 of 5 runs: 1 is not finished, 1 is damaged, 1 is without a test accuracy, 1 is of another result schema.");
    EXPECT_EQ(lines[1], "Not finished: mamba2, task 0, lr 0.002, seed 1.");
    EXPECT_EQ(lines[2], "Damaged: mamba2, task 0, lr 0.001, seed 1.");
    EXPECT_EQ(lines[3], "Without a test accuracy (not finite): gla, task 0, lr 0.002, seed 1.");
    EXPECT_EQ(lines[4], "Of another result schema: elsewhere.");
    const auto json = nlohmann::json::parse(table(rows, TableFormat::json));
    EXPECT_EQ(json.at("finished"), 1);
    EXPECT_EQ(json.at("damaged").size(), 1U);
    EXPECT_EQ(json.at("untested"), nlohmann::json({"gla, task 0, lr 0.002, seed 1"}));
    EXPECT_EQ(json.at("other_schema"), nlohmann::json({"elsewhere"}));
  }
}

TEST(Table, ListsNonDefaultSettingsFirstAndOmitsDefaults) {
  ModelRules models = rules();
  models.network = [](const RunConfig& config) {
    NetworkKeys keys{config.model.width, {{"a_min", "0"}, {"heads", "4"}, {"d_state", "128"}}};
    for (const auto& [key, value] : config.model.switches) keys.switches[key] = value;
    if (config.model.name == "gla") keys.switches.erase("d_state");
    return keys;
  };
  std::string text = "[grid]\nrun.seed = [1, 2]\n[model]\nname = 'mamba2'\nd_state = 16\nlayers = 3\ndropout = 0.1\n";
  text += "[grammar]\nvocab = 11\nambiguities = 10\ndepth = 10\nstart_states = 3\n";
  text += "[task]\nlength = 77\nnoise = 0.25\n[train]\nbatch = 8\nupdates = 500\nclip = 2\nbeta1 = 0.8\n";
  text += "beta2 = 0.98\neps = 1e-7\nweight_decay = 0.1\n[eval]\nvalid_samples = 50\ntest_samples = 60\n";
  const auto rows = [&](const std::string& suite) {
    return make_rows(runs_of(parse_suite(suite, "suite.toml", {}, models)), Axes{}, {}, {}, defaults_of(models));
  };
  const std::string table = run_table(rows(text), TableFormat::text);
  EXPECT_TRUE(has(table, "Everywhere: d_state 16, ", " more settings."));
  EXPECT_TRUE(lacks(table, "heads", "a_min"));

  const auto json = nlohmann::json::parse(
      cell_table(rows("[grid]\nmodel.name = ['gla', 'mamba2']\n[[override]]\nwhen = {model.name = 'mamba2'}\n"
                      "set = {model.d_state = 16}\n[model]\nresidual = 'post'\na_min = 0.5\n"),
                 TableFormat::json));
  EXPECT_EQ(json.at("everywhere").at("model.a_min"), "0.5");
  EXPECT_FALSE(json.at("everywhere").contains("model.d_state"));
  EXPECT_EQ(json.at("varying"), nlohmann::json({"model.name", "model.d_state"})) << "one list or the other";
}

TEST(Table, SwitchOfSomeModelsIsListedForThese) {
  const Rows rows =
      rows_of(suite_of("[grid]\nmodel.name = ['gla', 'mamba2']\n[[override]]\nwhen = {model.name = 'mamba2'}\n"
                       "set = {model.d_state = 8}\n[task]\nnoise = 0.25\n"));
  for (const auto& table : {cell_table, run_table}) {
    const auto lines = lines_of(table(rows, TableFormat::text));
    const auto with = [&](const std::string& start) {
      const auto it =
          std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.starts_with(start); });
      return it == lines.end() ? std::string() : *it;
    };
    EXPECT_TRUE(has(with("Everywhere: "), "noise 0.25")) << table(rows, TableFormat::text);
    EXPECT_TRUE(has(with("Everywhere: "), "d_state 8 (models that have it)"));
    const auto json = nlohmann::json::parse(table(rows, TableFormat::json));
    EXPECT_FALSE(json.at("everywhere").contains("model.d_state"));
  }
  const std::string alone = cell_table(
      rows_of(suite_of("[model]\nname = 'mamba2'\nd_state = 8\n[grid]\nrun.seed = [1, 2]\n")), TableFormat::text);
  EXPECT_TRUE(has(alone, "Everywhere: ") && has(alone, "d_state 8") && !has(alone, "that have it")) << alone;
}

TEST(Table, RunTableNotesIfValidIsTestSet) {
  const auto text = [](const std::string& suite) { return run_table(rows_of(suite_of(suite)), TableFormat::text); };
  const std::string one = "[grid]\nrun.seed = [1, 2]\n";
  const std::string faulty = text("[quirks]\nselect_on_test = true\n" + one);
  EXPECT_TRUE(has(faulty, "Column valid: accuracy on the test set (select_on_test)."));
  const std::string some = text(one + "quirks.select_on_test = [false, true]\n");
  EXPECT_TRUE(has(some, "Column valid: in 2 of 4 runs accuracy on the test set (select_on_test)."));
  EXPECT_TRUE(lacks(text(one), "Column valid"));
}

TEST(Table, JsonNamesAveragedSeedsAndCommonSettings) {
  const std::string grid = "[grid]\nmodel.name = ['gla', 'mamba2']\ntrain.lr = [1e-3, 2e-3]\nrun.seed = [1, 2]\n";
  const Rows rows =
      rows_of(suite_of(grid), [](Result& r) { r.valid->accuracy = r.lr > 1.5e-3 || r.model == "gla" ? .9 : .1; });
  const nlohmann::json average = {"grammar.seed", "train.seed", "train.order_seed"};
  const auto cells = nlohmann::json::parse(cell_table(rows, TableFormat::json));
  EXPECT_EQ(cells.at("average"), average);
  EXPECT_FALSE(cells.at("everywhere").contains("train.lr")) << "0.001 for gla, 0.002 for mamba2";
  EXPECT_EQ(cells.at("everywhere").at("train.warmup"), 476);
  const auto runs = nlohmann::json::parse(run_table(rows, TableFormat::json));
  EXPECT_EQ(runs.at("average"), average);
  EXPECT_FALSE(runs.at("everywhere").contains("train.lr"));
  for (const auto& run : runs.at("runs"))
    for (const auto& axis : average) EXPECT_TRUE(run.contains(axis.get<std::string>())) << axis;
  const Rows same = rows_of(suite_of(grid), [](Result& r) { r.valid->accuracy = r.lr; });
  EXPECT_TRUE(has(cell_table(same, TableFormat::text), "Everywhere: lr 0.002, warmup 476"));
  const auto chosen = nlohmann::json::parse(cell_table(same, TableFormat::json)).at("everywhere");
  EXPECT_EQ(chosen.at("train.lr"), .002);
  EXPECT_EQ(chosen.at("train.warmup"), 476);
}

TEST(Table, JsonIsAsciiWithOneRecordPerLine) {
  auto runs = runs_of(suite_of("[grid]\nrun.seed = [1, 2]\n"));
  runs[0].result.label = "caf\xc3\xa9 \xc2\x9b \xf0\x9f\x90\x9d \x7f";
  const Rows rows = make_rows(std::move(runs), Axes{});
  const std::string text = run_table(rows, TableFormat::json);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](unsigned char c) { return c == '\n' || (c >= 32 && c < 127); }));
  bool found = false;
  const auto parsed = nlohmann::json::parse(text);
  for (const auto& run : parsed.at("runs")) found |= run.at("label") == "caf\xc3\xa9 \xc2\x9b \xf0\x9f\x90\x9d \x7f";
  EXPECT_TRUE(found) << text;
  size_t records = 0;
  for (const auto& line : lines_of(text)) records += line.starts_with("    {\"run\": ");
  EXPECT_EQ(records, 2U) << text;
}

TEST(Table, SplitsWideTextAndRepeatsRowNames) {
  const std::string text = cell_table(rows_of(shipped("paper/task1_complexity.toml")), TableFormat::text);
  size_t headers = 0, widest = 0;
  for (const auto& line : lines_of(text)) {
    headers += line.starts_with("model ");
    if (line.starts_with("gla ")) widest = std::max(widest, line.size());
  }
  EXPECT_GT(headers, 1U);
  EXPECT_LT(widest, 170U);
}

// Two wide blocks: "a" has a figure in the first, "b" in the second, "c" in none.
TEST(Table, PartsOfWideTextLeaveOutRowsWithoutFigures) {
  const auto column = [](const char* name, int block) {
    return Sheet::Column{{std::string(name) + std::string(90, '.')}, false, block};
  };
  Sheet sheet;
  sheet.columns = {{{"model"}, true, 0}, column("x", 1), column("y", 2)};
  sheet.rows = {{"a", "0.1", ""}, {"b", "", "0.2"}, {"c", "", ""}};
  sheet.foot = {{"ceiling", "1", "1"}};
  std::string names;
  for (const auto& line : lines_of(text_sheet(sheet)))
    if (!line.empty() && line[0] != '-') names += line.substr(0, line.find(' ')) + " ";
  EXPECT_EQ(names, "model a c ceiling model b ceiling ");
}

TEST(Table, RunTableHasLinePerRunWithItsStanding) {
  const Rows rows = rows_of(suite_of("[grid]\ntrain.lr = [1e-3, 2e-3]\ntrain.seed = [1, 2]\n[run]\nlabel = \"w\"\n"));
  const std::string text = run_table(rows, TableFormat::text);
  for (const auto& run : rows.runs) EXPECT_TRUE(has(text, run.result.run_id));
  EXPECT_TRUE(has(text, "label", "grammar.seed", "train.seed", "lr", "warmup", "valid", "test", "ceiling", "fraction",
                  "params", "state", "status", "averaged", "not chosen"));
}

TEST(Table, LatexUsesBooktabs) {
  const std::string text = cell_table(rows_of(shipped("quick.toml")), TableFormat::latex);
  EXPECT_TRUE(has(text, "\\begin{tabular}{l", "\\toprule", "\\midrule", "\\bottomrule", "\\end{tabular}",
                  "gated\\_delta\\_net"));
}

TEST(Table, RejectsUnknownFormatWithNearestName) {
  EXPECT_TRUE(has(error_line([] { parse_table_format("txt"); }), "text"));
  EXPECT_EQ(error_line([] { parse_table_format("latex"); }), "");
}

TEST(Labels, KeepDigitsThatDistinguishValues) {
  const Rows rows = rows_of(suite_of("[grid]\ngrammar.density = [0.10000001, 0.10000002]\n"));
  const std::string text = cell_table(rows, TableFormat::text);
  EXPECT_TRUE(has(text, "0.10000001", "0.10000002"));
}

TEST(CellRecords, NameTheTestAxisAndItsValue) {
  const Suite suite = suite_of("[task]\nkind = \"copying\"\n[eval]\nlengths = [15]\n[grid]\nrun.seed = [1]\n");
  const Rows rows = rows_of(suite, [](Result& result) {
    for (auto& point : result.grid) point.axis = "length";
  });
  const auto json = nlohmann::json::parse(cell_table(rows, TableFormat::json));
  std::vector<std::string> seen;
  for (const auto& cell : json.at("cells")) seen.push_back(cell.at("axis").dump() + " " + cell.at("at").dump());
  EXPECT_EQ(seen, (std::vector<std::string>{"null null", "\"length\" 15"}));
  const auto gaps = nlohmann::json::parse(cell_table(rows_of(suite_of("[grid]\nrun.seed = [1]\n")), TableFormat::json));
  EXPECT_FALSE(gaps.at("cells").at(0).contains("at")) << "gaps have the key gap";
}

}  // namespace
}  // namespace sb::test
