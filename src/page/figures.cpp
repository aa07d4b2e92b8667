#include "page/figures.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "page/vega.h"
#include "tasks/task_registry.h"

namespace sb {

std::vector<ColumnRuns> runs_of_column(const Outline& outline, size_t column) {
  std::vector<ColumnRuns> out;
  for (const size_t index : outline.column_cells[column])
    if (!outline.rows.cells[index].runs.empty())
      out.push_back({outline.cells[index].series, outline.rows.cells[index].runs});
  return out;
}

std::vector<PageSeries> series_of(const Outline& outline, const std::vector<ColumnRuns>& cells) {
  std::vector<PageSeries> out;
  for (const auto& cell : cells) out.push_back(outline.series[cell.series]);
  return out;
}

Figure begin_figure(const Outline& outline, const std::string& kind, const PageColumn* column,
                    const std::vector<ColumnRuns>& cells) {
  Figure out;
  out.kind = kind;
  out.id = kind;
  std::replace(out.id.begin(), out.id.end(), '_', '-');
  if (column) {
    out.id = column->id + "-" + out.id;
    out.section = column->section;
    out.setting = column->setting;
  }
  std::set<std::string> seen;
  for (const auto& cell : cells) {
    const PageSeries& series = outline.series[cell.series];
    if (seen.insert(series.id).second) {
      out.series.push_back(series.id);
      out.palette.push_back(series.colour);
    }
    for (const auto& key : outline.keys_of(cell.runs)) out.runs.push_back(key);
  }
  return out;
}

std::string averaged_text(const std::vector<ColumnRuns>& cells) {
  size_t least = SIZE_MAX, most = 0;
  for (const auto& cell : cells) {
    least = std::min(least, cell.runs.size());
    most = std::max(most, cell.runs.size());
  }
  if (most <= 1) return "one run each";
  return least == most ? formatted("means over {} runs each", most)
                       : formatted("means over {} to {} runs", least, most);
}

void add_overview(const Outline& outline, PageData& data) {
  std::vector<ColumnRuns> all(outline.series.size());
  for (size_t s = 0; s < all.size(); ++s) all[s].series = s;
  Figure figure = begin_figure(outline, "overview", nullptr, all);
  figure.section = "summary";
  figure.title = "All rows, all columns";
  figure.columns = {{"series", "model", "nominal"},         {"column", "column", "nominal"},
                    {"mean", "accuracy", "quantitative"},   {"low", "interval from", "quantitative"},
                    {"high", "to", "quantitative"},         {"n_gram", "n-gram", "quantitative"},
                    {"ceiling", "ceiling", "quantitative"}, {"fraction", "of the ceiling", "quantitative"},
                    {"runs", "runs", "quantitative"}};
  std::map<std::string, const PageColumn*> columns;
  std::map<std::string, const PageSeries*> series;
  for (const auto& one : outline.columns) columns[one.id] = &one;
  for (const auto& one : outline.series) series[one.id] = &one;
  Json order = Json::array();
  std::set<std::string> used;
  for (const auto& cell : data.cells) {
    if (!cell.mean) continue;
    const PageColumn& column = *columns[cell.column];
    if (column.squared) continue;
    if (used.insert(column.id).second) order.push_back(column.name);
    figure.rows.push_back({series[cell.series]->name, column.name, *cell.mean, cell.low, cell.high, column.n_gram,
                           column.ceiling, cell.fraction, cell.runs.size()});
  }
  if (figure.rows.empty()) return;
  const auto shows = [&](bool (*has)(const PageColumn&)) {
    return std::any_of(outline.columns.begin(), outline.columns.end(), has);
  };
  figure.caption = formatted(
      "Mean accuracy of each cell of the table above{}; bars: 95 % interval over grammars if there are several, "
      "clipped "
      "to 0 to 1; grey ticks: the ceiling{}.",
      shows([](const PageColumn& c) { return c.squared; }) ? " except squared errors" : "",
      shows([](const PageColumn& c) { return c.n_gram.has_value(); }) ? "; thin grey ticks: the n-gram" : "");
  figure.summary = formatted("Accuracy of {} in {} of the table above.", counted(outline.series.size(), "row"),
                             counted(used.size(), "column"));
  const int step = std::max(44, static_cast<int>(12 * outline.series.size() + 16));
  const int plot = step * static_cast<int>(used.size());
  Json spec = vega_base(outline.series, plot);
  const Json y = {
      {"field", "column"}, {"type", "nominal"}, {"title", nullptr}, {"sort", order}, {"axis", {{"labelLimit", 220}}}};
  const Json offset = {{"field", "series"}, {"type", "nominal"}, {"sort", names_of(outline.series)}};
  Json dots = {{"y", y}, {"yOffset", offset}, {"x", axis_encoding({"mean", "accuracy"})}};
  Json bars = {{"y", y}, {"yOffset", offset}, {"x", axis_encoding({"low", "accuracy"})}, {"x2", {{"field", "high"}}}};
  for (Json* encoding : {&dots, &bars}) {
    colour_by_series(*encoding, outline.series);
    (*encoding)["opacity"] = dimmed_unless_picked();
  }
  const auto ticks = [&](const char* field, int thickness) {
    return Json{{"transform", Json::array({{{"filter", std::string("isValid(datum.") + field + ")"}}})},
                {"mark", {{"type", "tick"}, {"color", "#808080"}, {"thickness", thickness}, {"size", step - 10}}},
                {"encoding", {{"y", y}, {"x", axis_encoding({field, "accuracy"})}}}};
  };
  spec["layer"] =
      Json::array({ticks("ceiling", 2),
                   ticks("n_gram", 1),
                   {{"transform", Json::array({{{"filter", "isValid(datum.low)"}}})},
                    {"mark", {{"type", "rule"}, {"strokeWidth", 2}}},
                    {"encoding", std::move(bars)}},
                   {{"params", Json::array({legend_pick()})},
                    {"mark", {{"type", "point"}, {"filled", true}, {"size", 70}, {"tooltip", {{"content", "data"}}}}},
                    {"encoding", std::move(dots)}}});
  figure.spec = std::move(spec);
  figure.height = chart_height(outline.series.size(), plot);
  for (const auto& cell : data.cells)
    if (used.contains(cell.column)) figure.runs.insert(figure.runs.end(), cell.runs.begin(), cell.runs.end());
  data.figures.push_back(std::move(figure));
}

void add_figures(const Outline& outline, PageData& data) {
  add_overview(outline, data);
  std::set<std::string, decltype(&less_task)> tasks(&less_task);
  for (const auto& column : outline.columns) tasks.insert(column.task);
  for (const std::string& task : tasks) {
    const TaskText about = task_text(task);
    PageSection section{task_section(task), about.title, "task", {about.text}, {}};
    for (size_t c = 0; c < outline.columns.size(); ++c)
      if (outline.columns[c].task == task && outline.columns[c].own) add_curves(outline, c, data, section);
    add_sweeps(outline, task, data, section);
    for (size_t c = 0; c < outline.columns.size(); ++c)
      if (outline.columns[c].task == task && !outline.columns[c].squared) add_breakdowns(outline, c, data, section);
    data.sections.push_back(std::move(section));
  }
  add_inside(outline, data);
}

}  // namespace sb
