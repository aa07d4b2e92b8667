#include "page/vega.h"

#include <algorithm>

#include "report/palette.h"

namespace sb {
namespace {

constexpr const char* schema = "https://vega.github.io/schema/vega-lite/v6.json";
constexpr int legend_columns = 4;

Json only(const char* kind) {
  return Json::array({{{"filter", std::string("datum.kind == '") + kind + "'"}}});
}

// The grey of references has a contrast of 3.9:1 on white and 5.3:1 on black.
void add_references(Json& layers, const Axis& x, const Axis& y) {
  const Json series = vega(R"({"field": "series", "type": "nominal"})");
  layers.push_back({{"transform", only("reference")},
                    {"mark", vega(R"({"type": "line", "strokeDash": [5, 4], "color": "#808080", "clip": true,
                                      "tooltip": {"content": "data"}})")},
                    {"encoding", {{"x", axis_encoding(x)}, {"y", axis_encoding(y)}, {"detail", series}}}});
  Json last = only("reference");
  last.push_back({{"joinaggregate", Json::array({{{"op", "max"}, {"field", x.field}, {"as", "furthest"}}})}});
  last.push_back({{"filter", "datum." + x.field + " == datum.furthest"}});
  layers.push_back({{"transform", std::move(last)},
                    {"mark", vega(R"({"type": "text", "align": "right", "baseline": "bottom", "dy": -3,
                                      "color": "#808080", "fontSize": 11})")},
                    {"encoding", {{"x", axis_encoding(x)}, {"y", axis_encoding(y)}, {"text", series}}}});
}

}  // namespace

Json vega(const char* json) {
  return Json::parse(json);
}

Json names_of(const std::vector<PageSeries>& series) {
  Json out = Json::array();
  for (const auto& one : series) out.push_back(one.name);
  return out;
}

Json vega_base(const std::vector<PageSeries>& series, int plot_height) {
  Json colours = Json::array();
  for (const auto& one : series) colours.push_back(palette_light()[static_cast<size_t>(one.colour)]);
  Json out = {{"$schema", schema}, {"data", {{"name", "rows"}}}, {"width", "container"}, {"height", plot_height}};
  out["config"] = vega(R"({"range": {"category": []}, "view": {"stroke": null},
      "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
      "legend": {"labelFontSize": 12, "labelLimit": 260}})");
  out["config"]["range"]["category"] = std::move(colours);
  return out;
}

void colour_by_series(Json& encoding, const std::vector<PageSeries>& series, bool dashes) {
  const Json legend = {{"orient", "bottom"}, {"columns", legend_columns}, {"title", nullptr}, {"symbolOpacity", 1}};
  encoding["color"] = {
      {"field", "series"}, {"type", "nominal"}, {"scale", {{"domain", names_of(series)}}}, {"legend", legend}};
  if (!dashes || std::none_of(series.begin(), series.end(), [](const PageSeries& one) { return one.dash > 0; })) return;
  static const Json patterns = Json::parse("[[1,0],[6,3],[2,2],[8,2,2,2],[4,4],[1,3]]");
  Json range = Json::array();
  for (const auto& one : series) range.push_back(patterns[static_cast<size_t>(one.dash) % patterns.size()]);
  encoding["strokeDash"] = {{"field", "series"},
                            {"type", "nominal"},
                            {"scale", {{"domain", names_of(series)}, {"range", std::move(range)}}},
                            {"legend", legend}};
}

Json legend_pick() {
  return {{"name", "pick"}, {"select", {{"type", "point"}, {"fields", {"series"}}}}, {"bind", "legend"}};
}

// Zooms only with Ctrl; the wheel alone scrolls the page.
Json pan_and_zoom() {
  return {{"name", "view"}, {"select", {{"type", "interval"}, {"zoom", "wheel![event.ctrlKey]"}}}, {"bind", "scales"}};
}

Json point_mark(int size) {
  return {{"type", "point"}, {"filled", true}, {"size", size}, {"clip", true}, {"tooltip", {{"content", "data"}}}};
}

Json dimmed_unless_picked() {
  return {{"condition", {{"param", "pick"}, {"value", 1}}}, {"value", 0.12}};
}

Json axis_encoding(const Axis& axis) {
  Json scale = {{"zero", axis.zero}, {"nice", true}};
  if (axis.padded) scale = {{"zero", axis.zero}, {"nice", false}, {"padding", 8}};
  if (axis.log) scale = {{"type", "log"}, {"nice", false}, {"padding", 16}};
  return {{"field", axis.field}, {"type", "quantitative"}, {"title", axis.title}, {"scale", std::move(scale)}};
}

Json line_chart(const std::vector<PageSeries>& series, const Axis& across, const Axis& y, LineParts parts,
                int plot_height) {
  Axis x = across;
  x.padded = true;
  Json out = vega_base(series, plot_height);
  Json layers = Json::array();
  if (parts.band) {
    Json encoding = {
        {"x", axis_encoding(x)}, {"y", axis_encoding({"low", y.title, y.log, y.zero})}, {"y2", {{"field", "high"}}}};
    colour_by_series(encoding, series);
    encoding["opacity"] = {{"condition", {{"param", "pick"}, {"value", 0.16}}}, {"value", 0.03}};
    layers.push_back({{"transform", only("model")}, {"mark", {{"type", "area"}}}, {"encoding", std::move(encoding)}});
  }
  Json encoding = {{"x", axis_encoding(x)}, {"y", axis_encoding(y)}};
  colour_by_series(encoding, series, true);
  encoding["opacity"] = dimmed_unless_picked();
  layers.push_back({{"transform", only("model")},
                    {"params", Json::array({legend_pick(), pan_and_zoom()})},
                    {"mark", {{"type", "line"}, {"strokeWidth", 2}, {"clip", true}}},
                    {"encoding", encoding}});
  encoding.erase("strokeDash");
  layers.push_back({{"transform", only("model")}, {"mark", point_mark(36)}, {"encoding", std::move(encoding)}});
  if (parts.references) add_references(layers, x, y);
  out["layer"] = std::move(layers);
  return out;
}

Json bar_chart(const std::vector<PageSeries>& series, const Axis& x, bool references, int plot_height) {
  Json out = vega_base(series, plot_height);
  Json encoding = vega(R"({"y": {"field": "series", "type": "nominal", "title": null, "sort": [],
                                 "axis": {"labelLimit": 220}}})");
  encoding["y"]["sort"] = names_of(series);
  encoding["x"] = axis_encoding(x);
  colour_by_series(encoding, series);
  encoding["color"]["legend"] = nullptr;
  Json layers = Json::array();
  layers.push_back({{"transform", only("model")},
                    {"mark", {{"type", "bar"}, {"tooltip", {{"content", "data"}}}}},
                    {"encoding", std::move(encoding)}});
  if (references) {
    layers.push_back({{"transform", only("reference")},
                      {"mark", vega(R"({"type": "rule", "strokeDash": [5, 3], "color": "#808080"})")},
                      {"encoding", {{"x", axis_encoding(x)}}}});
    layers.push_back(
        {{"transform", only("reference")},
         {"mark", vega(R"({"type": "text", "align": "right", "dx": -3, "dy": -2, "baseline": "top",
                                        "color": "#808080", "fontSize": 11})")},
         {"encoding", vega(R"({"x": {}, "y": {"value": 0}, "text": {"field": "series", "type": "nominal"}})")}});
    layers.back()["encoding"]["x"] = axis_encoding(x);
  }
  out["layer"] = std::move(layers);
  return out;
}

int chart_height(size_t series, int plot_height) {
  const int lines = static_cast<int>((series + legend_columns - 1) / legend_columns);
  return plot_height + 60 + 20 * lines;
}

}  // namespace sb
