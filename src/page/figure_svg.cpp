#include "page/figure_svg.h"

#include <algorithm>
#include <map>

#include "base/number.h"
#include "findings/figures.h"
#include "findings/svg.h"

namespace sb {
namespace {

using Row = std::map<std::string, Json>;  // by key of the column

std::vector<Row> rows_of(const Figure& figure) {
  std::vector<Row> out;
  for (const auto& values : figure.rows) {
    Row row;
    for (size_t i = 0; i < values.size() && i < figure.columns.size(); ++i)
      row[figure.columns[i].key] = values[i].json();
    out.push_back(std::move(row));
  }
  return out;
}

std::optional<double> number(const Row& row, const std::string& key) {
  const auto at = row.find(key);
  return at == row.end() || !at->second.is_number() ? std::nullopt : std::optional(at->second.get<double>());
}

std::string text(const Row& row, const std::string& key) {
  const auto at = row.find(key);
  return at == row.end() || !at->second.is_string() ? "" : at->second.get<std::string>();
}

const PageSeries* find(const std::vector<PageSeries>& series, const std::string& name) {
  const auto at = std::find_if(series.begin(), series.end(), [&](const PageSeries& one) { return one.name == name; });
  return at == series.end() ? nullptr : &*at;
}

LinesFigure lines_of(const Figure& figure, const std::vector<PageSeries>& series, const std::string& x) {
  LinesFigure out{figure.title, {}, {}};
  for (const auto& row : rows_of(figure)) {
    const std::string name = text(row, "series");
    const auto at = number(row, x), value = number(row, "accuracy"), low = number(row, "low"),
               high = number(row, "high");
    if (!at || !value) continue;
    LinePoint point{*at, *value, {}};
    if (low && high) point.interval = Interval{*low, *high};
    if (const PageSeries* one = find(series, name); one && text(row, "kind") == "model") {
      if (out.lines.empty() || out.lines.back().label != name) out.lines.push_back({name, one->model, {}, one->colour});
      out.lines.back().points.push_back(point);
    } else {
      if (out.references.empty() || out.references.back().label != name) out.references.push_back({name, {}});
      out.references.back().points.push_back(point);
    }
  }
  return out;
}

// A bar for each row between 0 and 1, in groups of one column each; a tick is the ceiling.
std::string bars_svg(const Figure& figure, const std::vector<PageSeries>& series, const std::string& value,
                     const std::string& group) {
  constexpr double margin = 16, plot = 420, thickness = 10, number_room = 64;
  const std::vector<Row> rows = rows_of(figure);
  double label = 0;
  std::optional<double> shared_ceiling;  // of a figure whose references are rows
  for (const auto& row : rows) {
    label = std::max(label, text_width(text(row, "series")));
    if (text(row, "kind") == "reference" && text(row, "series") == "ceiling") shared_ceiling = number(row, value);
  }
  const double left = margin + label + 10, width = left + plot + number_room + margin;
  Svg svg;
  double y = margin + svg_line / 2;
  std::string heading;
  for (const auto& row : rows) {
    const PageSeries* one = find(series, text(row, "series"));
    const auto mean = number(row, value);
    if (!one || !mean || text(row, "kind") == "reference") continue;
    if (const std::string next = group.empty() ? "" : text(row, group); next != heading) {
      heading = next;
      svg.text(margin, y, heading, "ink bold");
      y += 1.2 * svg_line;
    }
    const double end = left + plot * std::clamp(*mean, 0.0, 1.0);
    svg.text(left - 10, y, one->name, "ink", Svg::Anchor::end);
    svg.rect(left, y - thickness / 2, end - left, thickness, "mark " + svg.series_class(one->colour));
    const auto low = number(row, "low"), high = number(row, "high");
    if (low && high && *high > *low)
      svg.line(left + plot * std::clamp(*low, 0.0, 1.0), y, left + plot * std::clamp(*high, 0.0, 1.0), y, "whisker");
    const auto own_ceiling = number(row, "ceiling");
    if (const auto ceiling = own_ceiling ? own_ceiling : shared_ceiling) {
      const double at = left + plot * std::clamp(*ceiling, 0.0, 1.0);
      svg.line(at, y - svg_line / 2, at, y + svg_line / 2, "axis");
    }
    svg.text(left + plot + 10, y, fixed(*mean, 3), "ink");
    y += svg_line;
  }
  svg.line(left, y, left + plot, y, "axis");
  for (const double tick : {0.0, 0.5, 1.0})
    svg.text(left + plot * tick, y + svg_line, fixed(tick, 1), "muted", Svg::Anchor::middle);
  return svg.document(width, y + 2 * svg_line, figure.title, figure.summary);
}

}  // namespace

std::string figure_svg(const Figure& figure, const std::vector<PageSeries>& series) {
  if (figure.rows.empty()) return "";
  if (figure.kind == "overview") return bars_svg(figure, series, "mean", "column");
  if (figure.kind == "gaps") return gaps_svg(lines_of(figure, series, "gap"));
  if (figure.kind == "learning_end") return bars_svg(figure, series, "accuracy", "");
  if (figure.kind == "learning") return curves_svg(lines_of(figure, series, "update"));
  return "";
}

}  // namespace sb
