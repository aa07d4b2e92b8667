// What wrong answers are: a wrong state of the right symbol, or a wrong symbol.
#include <map>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "page/figures.h"
#include "page/vega.h"
#include "report/palette.h"

namespace sb {
namespace {

struct Answers {
  double right = 0, same = 0, other = 0;
  double all() const { return right + same + other; }
};

}  // namespace

void add_confusion(const Outline& outline, PageData& data) {
  std::map<size_t, ColumnRuns> by_series;
  std::vector<std::vector<FigureValue>> rows;
  Json order = Json::array();
  for (size_t c = 0; c < outline.columns.size(); ++c) {
    if (!outline.columns[c].own) continue;
    std::vector<ColumnRuns> cells;
    std::vector<std::vector<FigureValue>> symbols;
    std::set<int> seen;
    for (const auto& cell : runs_of_column(outline, c)) {
      std::map<int, Answers> by_symbol;
      Answers sum;
      for (const size_t run : cell.runs)
        for (const auto& one : outline.rows.runs[run].result.test->confusion) {
          Answers& a = by_symbol[one.symbol];
          for (Answers* to : {&a, &sum}) {
            to->right += static_cast<double>(one.right);
            to->same += static_cast<double>(one.same_symbol);
            to->other += static_cast<double>(one.other_symbol);
          }
        }
      if (sum.all() <= 0) continue;
      cells.push_back(cell);
      const std::string& name = outline.series[cell.series].name;
      rows.push_back({name, outline.columns[c].name, "right", sum.right / sum.all()});
      rows.push_back({name, outline.columns[c].name, "right symbol, wrong state", sum.same / sum.all()});
      rows.push_back({name, outline.columns[c].name, "wrong symbol", sum.other / sum.all()});
      by_series[cell.series].series = cell.series;
      by_series[cell.series].runs.insert(by_series[cell.series].runs.end(), cell.runs.begin(), cell.runs.end());
      for (const auto& [symbol, a] : by_symbol) {
        if (a.all() <= 0) continue;
        seen.insert(symbol);
        symbols.push_back({name, symbol_name(symbol), (a.same + a.other) / a.all(), a.same / a.all(), a.other / a.all(),
                           static_cast<int64_t>(a.all())});
      }
    }
    if (cells.empty()) continue;
    order.push_back(outline.columns[c].name);
    Figure figure = begin_figure(outline, "confusion_symbol", &outline.columns[c], cells);
    figure.section = "inside";
    figure.setting = outline.columns[c].name;
    figure.title = "Wrong answers by symbol";
    figure.columns = {{"series", "model", "nominal"},
                      {"symbol", "symbol", "nominal"},
                      {"wrong", "wrong", "quantitative"},
                      {"same", "right symbol, wrong state", "quantitative"},
                      {"other", "wrong symbol", "quantitative"},
                      {"count", "elements", "quantitative"}};
    figure.rows = std::move(symbols);
    Json letters = Json::array();
    for (const int symbol : seen) letters.push_back(symbol_name(symbol));
    const int plot = 24 * static_cast<int>(cells.size());
    const auto shown = series_of(outline, cells);
    Json spec = vega_base(shown, plot);
    spec["config"]["range"].erase("category");
    spec["mark"] = vega(R"({"type": "rect", "tooltip": {"content": "data"}})");
    spec["encoding"] = vega(R"({
      "x": {"field": "symbol", "type": "nominal", "sort": [], "title": "symbol of the true state",
            "axis": {"labelAngle": 0}},
      "y": {"field": "series", "type": "nominal", "sort": [], "title": null, "axis": {"labelLimit": 200}},
      "color": {"field": "wrong", "type": "quantitative", "title": "share wrong",
                "scale": {"scheme": "viridis", "domainMin": 0}, "legend": {"orient": "bottom"}}})");
    spec["encoding"]["x"]["sort"] = letters;
    spec["encoding"]["y"]["sort"] = names_of(shown);
    figure.spec = std::move(spec);
    figure.palette.clear();
    figure.height = plot + 130;
    figure.caption =
        "Share of elements answered wrong, by the symbol of the true state; counts of a cell's runs, whose grammars "
        "may differ, are pooled.";
    figure.summary = formatted("Share of wrong answers by symbol of {}.", counted(cells.size(), "row"));
    data.figures.push_back(std::move(figure));
  }
  if (rows.empty()) return;
  std::vector<ColumnRuns> cells;
  for (auto& [s, cell] : by_series) cells.push_back(std::move(cell));
  Figure figure = begin_figure(outline, "confusion", nullptr, cells);
  figure.section = "inside";
  figure.title = "Kinds of wrong answers";
  figure.columns = {{"series", "model", "nominal"},
                    {"column", "column", "nominal"},
                    {"answer", "answer", "nominal"},
                    {"share", "share of elements", "quantitative"}};
  figure.rows = std::move(rows);
  const auto series = series_of(outline, cells);
  const int plot = 20 * static_cast<int>(series.size());
  Json spec = vega_base(series, plot);
  for (const char* key : {"width", "height"}) spec.erase(key);
  spec["config"]["range"]["category"] = colours_of(answer_colours());
  spec["facet"] = vega(R"({"row": {"field": "column", "type": "nominal", "sort": [], "title": null,
                           "header": {"labelAngle": 0, "labelAlign": "left", "labelLimit": 160}}})");
  spec["facet"]["row"]["sort"] = order;
  spec["spec"] =
      vega(R"({"width": 420, "height": 0, "mark": {"type": "bar", "tooltip": {"content": "data"}}, "encoding": {
      "y": {"field": "series", "type": "nominal", "sort": [], "title": null, "axis": {"labelLimit": 200}},
      "x": {"field": "share", "type": "quantitative", "title": "share of elements", "scale": {"domain": [0, 1]}},
      "color": {"field": "answer", "type": "nominal", "title": null,
                "scale": {"domain": ["right", "right symbol, wrong state", "wrong symbol"]},
                "legend": {"orient": "top"}}}})");
  spec["spec"]["height"] = plot;
  spec["spec"]["encoding"]["y"]["sort"] = names_of(series);
  figure.spec = std::move(spec);
  figure.palette = answer_colours();
  figure.height = 65 + (plot + 20) * static_cast<int>(order.size());
  figure.caption =
      "Shares of right answers and of two kinds of wrong ones. Right symbol, wrong state: the model lost the context. "
      "Wrong symbol: it lost the symbol itself. Counts of a cell's runs are pooled.";
  figure.summary =
      formatted("Shares of right answers, right symbols and wrong symbols of {}.", counted(cells.size(), "row"));
  data.figures.push_back(std::move(figure));
}

}  // namespace sb
