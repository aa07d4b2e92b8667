// Over generated folders of runs: every cell averages runs that differ in seeds alone, nothing is lost in silence, and
// what differs is seen.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "base/format.h"
#include "report/labels.h"
#include "report/table.h"
#include "synthetic.h"

namespace sb::test {
namespace {

class Folder {
 public:
  explicit Folder(uint64_t seed) : engine_(seed) {}

  std::vector<TableRun> make() {
    std::string text = "[grid]\n";
    for (const auto& axis : axes()) text += axis + "\n";
    std::vector<TableRun> runs = runs_of(suite_of(text));
    std::shuffle(runs.begin(), runs.end(), engine_);
    if (runs.size() > 150) runs.resize(150);
    const size_t holes = pick(3);  // how many runs of ten are not there
    std::erase_if(runs, [&](const TableRun&) { return pick(10) < holes; });
    for (auto& run : runs) change(run);
    return runs;
  }

 private:
  size_t pick(size_t below) { return engine_() % below; }

  std::vector<std::string> axes() {
    std::vector<std::string> all = {
        "train.lr = [1e-3, 2e-3, 4e-3]",
        "train.warmup = [100, 476]",
        "train.seed = [1, 2, 3]",
        "grammar.seed = [1, 2]",
        "model.name = [\"mamba2\", \"gla\", \"transformer\"]",
        "model.width = [64, 128]",
        "size = [{grammar.vocab = 5, grammar.ambiguities = 4}, {grammar.vocab = 9, grammar.ambiguities = 8}]",
        "grammar.density = [0.1, 0.2]",
        "which = [{task.number = 1}, {task.number = 2, eval.gaps = [20, 50]}, {task.number = 3, train.updates = 3000}]",
        "task.gap_max = [5, 10]",
        "task.objective = [\"state\", \"predict\"]",
        "fault = [{run.label = \"none\"}, {run.label = \"rate\", quirks.first_lr_zero = true}, "
        "{run.label = \"both\", quirks = {first_lr_zero = true, select_on_test = true}}]",
        "model.residual = [\"post\", \"pre\"]",
        "model.mlp = [0, 2]",
        "train.precision = [\"fp32\", \"fp64\"]",
        "train.batch = [16, 64]",
        "eval.test_samples = [100, 200]",
    };
    std::shuffle(all.begin(), all.end(), engine_);
    all.resize(3 + pick(4));
    return all;
  }

  void change(TableRun& run) {
    Result& r = run.result;
    if (labelled_) r.label = labels_[pick(labels_.size())];
    if (pick(8) == 0) {
      r.status = "diverged";
      r.test.reset();
      r.valid.reset();
      r.grid.clear();
    } else if (pick(30) == 0) {
      r.test.reset();
    } else if (pick(5) == 0 && r.task == 2) {
      run.evaluations.push_back(measured("test", .5, .9));
      run.evaluations.back().at = 30;
    }
  }

  std::mt19937_64 engine_;
  bool labelled_ = pick(4) == 0;
  std::vector<std::string> labels_ = {"",
                                      "a",
                                      "a ",
                                      " a",
                                      "a|b, \"c\"",
                                      "\x1b[31m",
                                      "\\x1b[31m",
                                      "&%_#\n\\",
                                      "\xc3\xa4",
                                      std::string(300, 'x'),
                                      std::string(300, 'x') + "y"};
};

std::map<std::string, std::string> without(const Result& r, const std::vector<std::string>& axes) {
  auto config = r.config;
  for (const auto& axis : axes) config.erase(config_key(axis));
  config["label"] = r.label;
  for (const auto& quirk : r.quirks) config["quirk " + quirk] = "on";
  return config;
}

const Measurement* find_point(const TableRun& run, const Point& point) {
  if (point == Point{}) return &*run.result.test;
  for (const auto& m : run.result.grid)
    if (m.at == point.at && point.split.empty()) return &m;
  for (const auto& m : run.evaluations)
    if (m.at == point.at && (point.split.empty() || m.split == point.split)) return &m;
  return nullptr;
}

void check_cell(const Rows& rows, const Cell& cell) {
  if (cell.runs.empty()) return;
  const Group& group = rows.groups[cell.group];
  ASSERT_TRUE(group.chosen.has_value());
  const Result& first = rows.runs[cell.runs[0]].result;
  std::set<std::vector<std::string>> seeds;
  double sum = 0, ceiling = 0;
  std::map<uint64_t, std::vector<double>> grammars;
  for (const size_t i : cell.runs) {
    const Result& r = rows.runs[i].result;
    EXPECT_EQ(r.status, "done");
    EXPECT_EQ(without(r, rows.axes.average), without(first, rows.axes.average)) << "more than the seeds differs";
    EXPECT_TRUE(seeds.insert(rows.seeds[i]).second) << "a seed twice";
    EXPECT_EQ(rows.standing[i], Standing::averaged);
    const Measurement* m = find_point(rows.runs[i], cell.point);
    ASSERT_NE(m, nullptr);
    sum += m->accuracy;
    ceiling += m->ceiling->accuracy;
    grammars[r.grammar_seed].push_back(m->accuracy);
  }
  const auto n = static_cast<double>(cell.runs.size());
  EXPECT_NEAR(cell.mean, sum / n, 1e-12);
  EXPECT_NEAR(*cell.ceiling, ceiling / n, 1e-12);
  std::vector<double> units;
  for (const auto& [seed, values] : grammars) {
    if (grammars.size() == 1)
      units = values;
    else
      units.push_back(std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()));
  }
  EXPECT_EQ(cell.sd.has_value(), units.size() > 1);
  if (units.size() > 1) {
    const double mean = std::accumulate(units.begin(), units.end(), 0.0) / static_cast<double>(units.size());
    double squares = 0;
    for (const double u : units) squares += (u - mean) * (u - mean);
    EXPECT_NEAR(*cell.sd, std::sqrt(squares / static_cast<double>(units.size() - 1)), 1e-12);
  }
}

// Selection made again from the runs alone.
void check_choice(const Rows& rows, const Group& group) {
  std::map<std::vector<std::string>, std::map<std::vector<std::string>, double>> valid;  // settings, seeds
  std::set<std::vector<std::string>> all;
  for (size_t i = 0; i < rows.runs.size(); ++i) {
    if (&rows.groups[rows.group_of[i]] != &group || rows.runs[i].result.status != "done") continue;
    valid[rows.settings[i]][rows.seeds[i]] = rows.runs[i].result.valid->accuracy;
    all.insert(rows.seeds[i]);
  }
  double best = -1;
  std::set<std::vector<std::string>> winners;
  for (const auto& [settings, by_seed] : valid) {
    if (by_seed.size() != all.size()) continue;
    double sum = 0;
    for (const auto& [seed, value] : by_seed) sum += value;
    const double mean = sum / static_cast<double>(all.size());
    if (mean > best + 1e-12) winners.clear();
    if (mean > best - 1e-12) winners.insert(settings);
    best = std::max(best, mean);
  }
  if (!winners.empty()) {
    ASSERT_TRUE(group.chosen.has_value());
    EXPECT_TRUE(winners.contains(group.candidates[*group.chosen].settings));
  }
}

TEST(Property, CellsAverageOnlySeedsAndKeepEveryRun) {
  size_t cells = 0, several = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto given = Folder(seed).make();
    if (given.empty()) continue;
    const Rows rows = make_rows(given, Axes{});
    std::map<std::string, int> placed;
    for (const auto& group : rows.groups) {
      for (const auto& candidate : group.candidates)
        for (const auto* runs : {&candidate.runs, &candidate.diverged})
          for (const size_t run : *runs) ++placed[rows.runs[run].result.run_id];
      check_choice(rows, group);
    }
    std::string notes;
    for (const auto& note : rows.notes) notes += note + "\n";
    for (const auto& run : given) {
      const bool named = notes.find(run.result.run_id) != std::string::npos;
      EXPECT_EQ(placed[run.result.run_id] + (named ? 1 : 0), 1) << run.result.run_id;
    }
    std::set<std::pair<size_t, Point>> seen;
    for (const auto& cell : rows.cells) {
      EXPECT_TRUE(seen.emplace(cell.group, cell.point).second);
      check_cell(rows, cell);
      ++cells;
      several += cell.runs.size() > 1;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(cells, 2000U);
  EXPECT_GT(several, 200U);
}

TEST(Property, DifferentSettingsHaveDifferentLabels) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto given = Folder(seed).make();
    if (given.empty()) continue;
    const Rows rows = make_rows(given, Axes{});
    const Labels labels = make_labels(rows.groups);
    std::set<std::pair<std::vector<std::string>, std::vector<std::string>>> names;
    std::map<std::vector<std::string>, std::vector<std::string>> row_texts;
    for (const auto& group : rows.groups) {
      std::vector<std::string> row;
      for (const auto& axis : labels.rows) row.push_back(axis.text(group));
      EXPECT_TRUE(names.emplace(row, labels.column_lines(group)).second) << labels.name(group);
      const auto [at, fresh] = row_texts.emplace(row, labels.row_values(group));
      EXPECT_EQ(at->second, labels.row_values(group)) << "two rows of one name";
    }
    if (HasFailure()) return;
  }
}

TEST(Property, EveryFormatHasEveryCellWithoutControlCharacters) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto given = Folder(seed).make();
    if (given.empty()) continue;
    const Rows rows = make_rows(given, Axes{});
    for (const auto& name : table_format_names()) {
      const TableFormat format = parse_table_format(name);
      for (const auto& text : {cell_table(rows, format), run_table(rows, format)})
        for (const char c : text) ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << name;
      if (format == TableFormat::csv) {
        const std::string csv = cell_table(rows, format), runs = run_table(rows, format);
        EXPECT_EQ(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')), rows.cells.size() + 1);
        EXPECT_EQ(static_cast<size_t>(std::count(runs.begin(), runs.end(), '\n')), rows.runs.size() + 1);
      }
      if (format == TableFormat::json) {
        const auto json = nlohmann::json::parse(cell_table(rows, format));
        EXPECT_EQ(json.at("cells").size(), rows.cells.size());
        std::set<std::string> records;
        for (const auto& cell : json.at("cells")) {
          std::string key = cell.at("model").dump() + cell.at("task").dump() + cell.at("gap").dump();
          for (const auto& axis : json.at("varying"))
            if (cell.contains(axis)) key += axis.dump() + cell.at(axis.get<std::string>()).dump();
          EXPECT_TRUE(records.insert(key + cell.at("width").dump()).second) << key;
        }
        EXPECT_EQ(nlohmann::json::parse(run_table(rows, format)).at("runs").size(), rows.runs.size());
      }
    }
    const std::string text = cell_table(rows, TableFormat::text);
    for (const auto& cell : rows.cells)
      if (!cell.runs.empty()) {
        EXPECT_NE(text.find(formatted("{:.3f}", cell.mean)), std::string::npos);
      }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace sb::test
