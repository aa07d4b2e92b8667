#include "page/outline.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "grammar/build.h"
#include "report/layout.h"
#include "report/order.h"
#include "report/palette.h"

namespace sb {
namespace {

// The labels after the model, if they distinguish rows.
std::string setting_of(const Labels& labels, const Group& group) {
  std::vector<std::string> parts;
  for (size_t i = 1; i < labels.rows.size(); ++i)
    if (labels.rows[i].shown[0].size() > 1)
      for (const auto& line : labels.rows[i].lines(group)) parts.push_back(line);
  return joined(parts, ", ");
}

void add_series(Outline& out) {
  std::map<std::vector<std::string>, std::vector<size_t>, RowOrder> groups;
  for (size_t g = 0; g < out.rows.groups.size(); ++g) groups[out.labels.row_values(out.rows.groups[g])].push_back(g);
  std::map<std::string, int> dashes;
  std::set<std::string> models;
  for (const auto& group : out.rows.groups) models.insert(group.model());
  const auto colours = model_colours_of(models);
  out.series_of_group.resize(out.rows.groups.size());
  for (const auto& [values, members] : groups) {
    const Group& group = out.rows.groups[members.front()];
    PageSeries one;
    one.id = formatted("s{}", out.series.size());
    one.model = group.model();
    one.setting = setting_of(out.labels, group);
    one.name = out.labels.row_name(group);
    one.colour = colours.at(one.model);
    one.dash = dashes[one.model]++;
    for (const size_t g : members) out.series_of_group[g] = out.series.size();
    if (one.dash == 0) out.models.push_back({one.model, model_title(one.model), one.colour});
    out.series.push_back(std::move(one));
  }
}

void set_bounds(const Outline& outline, const std::vector<size_t>& cells, PageColumn& column) {
  Range ceiling, n_gram, chance, n;
  bool exact = true;
  for (const size_t i : cells) {
    const Cell& cell = outline.rows.cells[i];
    exact &= cell.ceiling_exact;
    if (const auto& figure = cell.ceiling_exact ? cell.ceiling : cell.upper_bound) ceiling.add(*figure);
    if (cell.chance) chance.add(*cell.chance);
    if (!cell.n_gram) continue;
    n_gram.add(*cell.n_gram);
    n.add(cell.n_least);
    n.add(cell.n_most);
  }
  const auto digits = [](double v) { return fixed(v, 3); };
  column.n_gram_text = n_gram.text(digits, "–");
  if (n.low) column.n_gram_text += formatted(" (n {})", n_text(static_cast<int>(*n.low), static_cast<int>(*n.high)));
  column.ceiling_text = (!ceiling.low ? "" : column.squared ? "≥ " : exact ? "" : "≤ ") + ceiling.text(digits, "–");
  column.chance_text = chance.text(digits, "–");
  column.n_gram = n_gram.mean();
  column.ceiling = ceiling.mean();
  column.chance = chance.mean();
}

void add_columns(Outline& out) {
  std::map<ColumnKey, std::vector<size_t>, ColumnOrder> columns;
  for (const size_t i : ordered_cells(out.rows, out.labels)) {
    const Cell& cell = out.rows.cells[i];
    columns[{out.labels.column_values(out.rows.groups[cell.group]), cell.point}].push_back(i);
  }
  out.cells.resize(out.rows.cells.size());
  out.own_column_of_group.resize(out.rows.groups.size());
  for (const auto& [key, cells] : columns) {
    const Group& group = out.rows.groups[out.rows.cells[cells.front()].group];
    PageColumn column;
    column.id = formatted("c{}", out.columns.size());
    column.lines = out.labels.column_lines(group);
    std::vector<std::string> settings(column.lines.begin() + 1, column.lines.end());  // the task comes first
    out.settings.push_back(joined(settings, ", "));
    out.points.push_back(key.point);
    column.squared = std::any_of(cells.begin(), cells.end(), [&](size_t i) { return out.rows.cells[i].squared; });
    std::vector<std::string> measured = point_lines(key.point);
    std::vector<std::string> data = settings;
    data.insert(data.end(), measured.begin(), measured.end());
    column.data_setting = joined(data, ", ");
    if (column.squared) measured.emplace_back("squared error");
    for (const auto& line : measured) {
      column.lines.push_back(line);
      settings.push_back(line);
    }
    column.name = joined(column.lines, ", ");
    column.setting = joined(settings, ", ");
    column.task = plain_value(group.value("task.number"));
    if (column.task.empty()) column.task = "0";
    column.section = task_section(column.task);
    column.at = key.point.at;
    column.own = key.point == Point{};
    column.metric_text = std::string(key.point.split.empty() ? "test" : key.point.split) +
                         (column.squared ? " squared error" : " accuracy") +
                         (group.value("task.objective") == "\"predict\"" ? " of the next symbol" : "");
    for (const size_t i : cells) {
      const size_t g = out.rows.cells[i].group;
      out.cells[i] = {out.series_of_group[g], out.columns.size()};
      if (column.own) out.own_column_of_group[g] = out.columns.size();
    }
    set_bounds(out, cells, column);
    out.columns.push_back(std::move(column));
    out.column_cells.push_back(cells);
  }
}

}  // namespace

std::vector<std::string> Outline::keys_of(const std::vector<size_t>& runs) const {
  std::vector<std::string> out;
  for (const size_t run : runs) out.push_back(keys[run]);
  return out;
}

Outline make_outline(const SourceContent& source) {
  Outline out{
      source, source.rows, make_labels(source.rows.groups, source.rows.defaults), {}, {}, {}, {}, {}, {}, {}, {},
      {},     {}};
  for (const auto& run : source.rows.runs) out.keys.push_back(run.result.run_id);  // hex digits, each once
  add_series(out);
  add_columns(out);
  return out;
}

std::string task_section(const std::string& task) {
  std::string out = "task-" + task;
  for (char& c : out)
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_') c = '-';
  return out;
}

bool less_task(const std::string& a, const std::string& b) {
  const auto x = parse_integer(a), y = parse_integer(b);
  return x && y ? *x < *y : x || y ? x.has_value() : a < b;
}

std::string symbol_name(int symbol) {
  return symbol == 0 ? "#" : letter_name(symbol - 1);
}

std::string points_text(double difference) {
  std::string digits = fixed(std::abs(difference) * 100, 1);
  return (digits == "0.0" ? "" : difference < 0 ? "-" : "+") + digits;
}

std::string difference_text(const PageColumn& column, double difference) {
  if (!column.squared) return points_text(difference);
  const std::string digits = fixed(std::abs(difference), 4);
  return (digits == "0.0000" ? "" : difference < 0 ? "-" : "+") + digits;
}

std::map<size_t, MissingCounts> missing_by_group(const Outline& outline) {
  std::map<size_t, MissingCounts> out;
  const std::set<std::string> whole(outline.keys.begin(), outline.keys.end());
  for (const auto& run : outline.source.runs) {
    const ReadRun& read = *run->read;
    if (read.run || read.config.empty() || whole.contains(read.report.run_id)) continue;
    for (size_t g = 0; g < outline.rows.groups.size(); ++g) {
      const Group& group = outline.rows.groups[g];
      const bool fits = std::all_of(outline.labels.varying.begin(), outline.labels.varying.end(), [&](const auto& key) {
        const auto at = read.config.find(key);
        const bool told_otherwise = key == "quirks" || key == "run.label" || key == "task.number";  // compared below
        return told_otherwise || group.value(key) == (at == read.config.end() ? "" : at->second);
      });
      const auto same = [&](const char* key) {
        const auto kind = key == std::string("task.number") ? read.config.find("task.kind") : read.config.end();
        const auto at = kind != read.config.end() ? kind : read.config.find(key);
        return at != read.config.end() && at->second == group.value(key);
      };
      if (!fits || !same("model.name") || !same("task.number")) continue;
      MissingCounts& counts = out[g];
      ++(read.report.state == RunState::unfinished ? counts.unfinished
         : read.other_schema                       ? counts.other
                                                   : counts.damaged);
      break;
    }
  }
  return out;
}

}  // namespace sb
