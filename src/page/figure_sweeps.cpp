// Accuracy as a function of grammar complexity, network size and gap length.
#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "page/figures.h"
#include "page/vega.h"
#include "report/cells.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

constexpr int sweep_height = 300;

const PageCell* find_cell(const PageData& data, const std::string& series, const std::string& column) {
  for (const auto& cell : data.cells)
    if (cell.series == series && cell.column == column) return cell.mean ? &cell : nullptr;
  return nullptr;
}

std::string metric_of(const PageColumn& column) {
  return column.squared ? "Squared error" : "Accuracy";
}

// One point per grammar; if there are several columns, lines through their means.
void add_complexity(const Outline& outline, const std::string& task, PageData& data, PageSection& section) {
  std::map<size_t, ColumnRuns> by_series;
  std::set<double> entropies;
  std::set<size_t> columns;
  Figure figure;
  std::vector<std::vector<FigureValue>> rows;
  std::map<double, std::pair<double, size_t>> ceilings, n_grams;
  for (size_t c = 0; c < outline.columns.size(); ++c) {
    if (outline.columns[c].task != task || !outline.columns[c].own || outline.columns[c].squared) continue;
    for (const auto& cell : runs_of_column(outline, c)) {
      std::vector<size_t> runs;
      std::vector<double> entropy, accuracy;
      for (const size_t run : cell.runs) {
        const Result& r = outline.rows.runs[run].result;
        if (!r.topological_entropy) continue;
        runs.push_back(run);
        entropy.push_back(*r.topological_entropy);
        accuracy.push_back(r.test->score());
        if (const auto n_gram = n_gram_of(r)) {
          auto& [sum, n] = n_grams[*r.topological_entropy];
          sum += n_gram->accuracy;
          ++n;
        }
        if (r.test->ceiling && r.test->ceiling->exact) {
          auto& [sum, n] = ceilings[*r.topological_entropy];
          sum += r.test->ceiling->score();
          ++n;
        }
      }
      const auto means = means_by_grammar(outline.rows, runs, accuracy);
      const auto at = means_by_grammar(outline.rows, runs, entropy);
      for (const auto& [grammar, mean] : means) {
        std::vector<std::string> seeds;
        for (const auto& part : grammar) seeds.push_back(part.empty() ? "given" : plain_value(part));
        rows.push_back({outline.series[cell.series].name, "model", at.at(grammar), mean, outline.columns[c].setting,
                        joined(seeds, "/")});
        entropies.insert(at.at(grammar));
      }
      ColumnRuns& all = by_series[cell.series];
      all.series = cell.series;
      all.runs.insert(all.runs.end(), runs.begin(), runs.end());
      if (!runs.empty()) columns.insert(c);
    }
  }
  if (entropies.empty()) return;
  if (entropies.size() < 2) {
    section.absent.emplace_back("Accuracy by complexity: all grammars have the same topological entropy.");
    return;
  }
  std::vector<ColumnRuns> cells;
  for (auto& [s, cell] : by_series) cells.push_back(std::move(cell));
  figure = begin_figure(outline, "complexity", nullptr, cells);
  figure.id = section.id + "-complexity";
  figure.section = section.id;
  figure.title = "Accuracy by complexity";
  figure.columns = {{"series", "model", "nominal"},
                    {"kind", "kind", "nominal"},
                    {"entropy", "topological entropy, nats", "quantitative"},
                    {"accuracy", "test accuracy", "quantitative"},
                    {"setting", "setting", "nominal"},
                    {"grammar", "grammar", "nominal"}};
  figure.rows = std::move(rows);
  for (const auto& [name, sums] : {std::pair{"ceiling", &ceilings}, {"n-gram", &n_grams}})
    for (const auto& [entropy, sum] : *sums)
      figure.rows.push_back({name, "reference", entropy, sum.first / static_cast<double>(sum.second), "", ""});
  const auto series = series_of(outline, cells);
  Json spec = vega_base(series, sweep_height);
  const Axis x{"entropy", "topological entropy of the grammar, nats", false, false, true};
  const Axis y{"accuracy", "test accuracy"};
  const auto models = Json::array({{{"filter", "datum.kind == 'model'"}}});
  Json encoding = {{"x", axis_encoding(x)}, {"y", axis_encoding(y)}};
  colour_by_series(encoding, series);
  encoding["opacity"] = dimmed_unless_picked();
  Json layers = Json::array();
  if (columns.size() > 1) {
    Json means = models;
    means.push_back(vega(R"({"aggregate": [{"op": "mean", "field": "entropy", "as": "entropy"},
                                           {"op": "mean", "field": "accuracy", "as": "accuracy"}],
                             "groupby": ["series", "setting"]})"));
    layers.push_back(
        {{"transform", std::move(means)}, {"mark", {{"type", "line"}, {"strokeWidth", 2}}}, {"encoding", encoding}});
  }
  layers.push_back({{"transform", models},
                    {"params", Json::array({legend_pick(), pan_and_zoom()})},
                    {"mark", point_mark(60)},
                    {"encoding", encoding}});
  layers.push_back({{"transform", Json::array({{{"filter", "datum.kind == 'reference'"}}})},
                    {"mark", vega(R"({"type": "tick", "color": "#808080", "thickness": 2, "size": 26, "clip": true,
                                      "tooltip": {"content": "data"}, "orient": "horizontal"})")},
                    {"encoding", {{"x", axis_encoding(x)}, {"y", axis_encoding(y)}}}});
  spec["layer"] = std::move(layers);
  figure.spec = std::move(spec);
  figure.height = chart_height(series.size(), sweep_height);
  figure.caption = formatted(
      "One point per grammar and row; runs that share a grammar are averaged. Grey: the grammar's ceiling and, below "
      "it, "
      "its n-gram{}.",
      columns.size() > 1 ? "; lines connect the means of each grammar size" : "");
  figure.summary = formatted("Accuracy over topological entropy of {} on {}.", counted(cells.size(), "row"),
                             counted(entropies.size(), "grammar"));
  data.figures.push_back(std::move(figure));
}

void add_size(const Outline& outline, size_t column, PageData& data, PageSection& section) {
  const PageColumn& place = outline.columns[column];
  const auto cells = runs_of_column(outline, column);
  const std::string metric = metric_of(place), on_test = place.squared ? "test squared error" : "test accuracy";
  std::set<int64_t> sizes;
  std::map<std::string, std::set<int64_t>> by_model;
  Figure figure = begin_figure(outline, "size", &place, cells);
  for (const auto& cell : cells) {
    const PageSeries& series = outline.series[cell.series];
    const PageCell* found = find_cell(data, series.id, place.id);
    const int64_t params = outline.rows.runs[cell.runs.front()].result.params;
    if (!found || params < 1) continue;
    sizes.insert(params);
    by_model[series.model].insert(params);
    figure.rows.push_back({series.name, "model", series.model, params, *found->mean, found->low, found->high});
  }
  if (sizes.size() < 2) {
    section.absent.push_back(metric + " by size" + (place.data_setting.empty() ? "" : " (" + place.data_setting + ")") +
                             ": all networks have the same size.");
    return;
  }
  figure.title = metric + " by size of the network";
  figure.columns = {{"series", "row", "nominal"},          {"kind", "kind", "nominal"},
                    {"model", "model", "nominal"},         {"params", "parameters", "quantitative"},
                    {"accuracy", on_test, "quantitative"}, {"low", "interval from", "quantitative"},
                    {"high", "to", "quantitative"}};
  const auto series = series_of(outline, cells);
  const bool lines =
      std::any_of(by_model.begin(), by_model.end(), [](const auto& each) { return each.second.size() > 1; });
  const Axis x{"params", "parameters", true}, y{"accuracy", on_test};
  Json encoding = {{"x", axis_encoding(x)}, {"y", axis_encoding(y)}};
  Json joined_up = encoding;
  joined_up["detail"] = {{"field", "model"}, {"type", "nominal"}};
  colour_by_series(encoding, series);
  encoding["opacity"] = dimmed_unless_picked();
  Json bars = encoding;
  bars["y"] = axis_encoding({"low", on_test});
  bars["y2"] = {{"field", "high"}};
  Json spec = vega_base(series, sweep_height);
  spec["layer"] = Json::array();
  if (lines)
    spec["layer"].push_back(
        {{"mark", {{"type", "line"}, {"color", "#808080"}, {"strokeWidth", 1}}}, {"encoding", std::move(joined_up)}});
  spec["layer"].push_back({{"transform", Json::array({{{"filter", "isValid(datum.low)"}}})},
                           {"mark", {{"type", "rule"}, {"clip", true}}},
                           {"encoding", std::move(bars)}});
  spec["layer"].push_back({{"params", Json::array({legend_pick(), pan_and_zoom()})},
                           {"mark", point_mark(70)},
                           {"encoding", std::move(encoding)}});
  figure.spec = std::move(spec);
  figure.height = chart_height(series.size(), sweep_height);
  figure.caption =
      formatted("Mean {} over the number of parameters (logarithmic), bars: 95 % interval over grammars{}.", on_test,
                lines ? "; lines connect networks of one model" : "");
  figure.summary = formatted("{} over parameters of {}.", metric, counted(cells.size(), "network"));
  data.figures.push_back(std::move(figure));
}

// Null for a task of the paper, and for a kind that is unknown or has no test axis.
const TaskRow* row_of(const std::string& task) {
  for (const TaskRow& row : task_registry())
    if (row.name == task && row.axis) return &row;
  return nullptr;
}

// Curves over columns that differ only in the value of the test axis.
void add_axis(const Outline& outline, const std::string& task, PageData& data, PageSection& section) {
  std::map<std::string, std::vector<size_t>> curves;  // by the data's settings
  for (size_t c = 0; c < outline.columns.size(); ++c) {
    const Point& point = outline.points[c];
    if (outline.columns[c].task == task && point.at && point.split.empty() && point.computed.empty())
      curves[outline.settings[c]].push_back(c);
  }
  for (const auto& [setting, columns] : curves) {
    if (columns.size() < 2) continue;
    std::map<size_t, ColumnRuns> by_series;
    for (const size_t c : columns)
      for (const auto& cell : runs_of_column(outline, c)) {
        by_series[cell.series].series = cell.series;
        auto& runs = by_series[cell.series].runs;
        for (const size_t run : cell.runs)
          if (std::find(runs.begin(), runs.end(), run) == runs.end()) runs.push_back(run);
      }
    std::vector<ColumnRuns> cells;
    for (auto& [s, cell] : by_series) cells.push_back(std::move(cell));
    const PageColumn& first = outline.columns[columns.front()];
    const std::string axis = outline.points[columns.front()].axis;  // empty: gap
    const std::string key = axis.empty() ? "gap" : "at", metric = metric_of(first);
    const TaskRow* row = row_of(task);
    const std::string x_title = axis.empty() ? "length of test gaps, frames" : row ? row->axis->title : axis;
    Figure figure = begin_figure(outline, axis.empty() && !first.squared ? "gaps" : "axis", &first, cells);
    figure.setting = setting;
    figure.title = axis.empty() ? "Accuracy over the length of gaps (task 4)" : metric + " over " + axis;
    figure.columns = {{"series", "model", "nominal"},
                      {"kind", "kind", "nominal"},
                      {key, axis.empty() ? "gap, frames" : axis, "quantitative"},
                      {"accuracy", first.squared ? "squared error" : "accuracy", "quantitative"},
                      {"low", "interval from", "quantitative"},
                      {"high", "to", "quantitative"},
                      {"runs", "runs", "quantitative"}};
    bool band = false;
    for (const auto& cell : cells)
      for (const size_t c : columns)
        if (const PageCell* found = find_cell(data, outline.series[cell.series].id, outline.columns[c].id)) {
          figure.rows.push_back({outline.series[cell.series].name, "model", *outline.points[c].at, *found->mean,
                                 found->low, found->high, found->runs.size()});
          band |= found->low.has_value();
        }
    std::vector<std::string> references;
    for (const auto& [name, value] : {std::pair{first.squared ? "bound" : "ceiling", &PageColumn::ceiling},
                                      {"n-gram", &PageColumn::n_gram},
                                      {"chance", &PageColumn::chance}})
      for (const size_t c : columns)
        if (const auto& level = outline.columns[c].*value) {
          figure.rows.push_back({name, "reference", *outline.points[c].at, *level, {}, {}, {}});
          if (references.empty() || references.back() != name) references.emplace_back(name);
        }
    const auto series = series_of(outline, cells);
    figure.spec =
        line_chart(series, {key, x_title}, {"accuracy", first.squared ? "squared error" : "accuracy", false, true},
                   {band, true}, sweep_height);
    figure.height = chart_height(series.size(), sweep_height);
    const std::string averaged = averaged_text(cells) + (band ? "; band: 95 % interval over grammars" : "");
    if (axis.empty()) {
      figure.caption = formatted(
          "Test accuracy with every gap of this length, without retraining: {}. Dashed: ceiling, n-gram and chance at "
          "each length.",
          averaged);
      figure.summary = formatted("Accuracy over gap length of {}.", counted(cells.size(), "row"));
    } else {
      figure.caption = formatted("{} on test by {}, without retraining: {}.{}", metric, axis, averaged,
                                 references.empty() ? "" : formatted(" Dashed: {}.", joined(references, ", ")));
      figure.summary = formatted("{} over {} of {}.", metric, axis, counted(cells.size(), "row"));
    }
    data.figures.push_back(std::move(figure));
  }
  if (curves.empty() && (task == "2" || task == "4"))
    section.absent.emplace_back(
        "Accuracy over the length of gaps: no run was tested at other lengths (eval.gaps, or `eval --gap … --save`).");
}

}  // namespace

void add_sweeps(const Outline& outline, const std::string& task, PageData& data, PageSection& section) {
  add_axis(outline, task, data, section);
  add_complexity(outline, task, data, section);
  for (size_t c = 0; c < outline.columns.size(); ++c)
    if (outline.columns[c].task == task && outline.columns[c].own) add_size(outline, c, data, section);
}

}  // namespace sb
