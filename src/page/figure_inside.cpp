// What networks do inside: gates on data and in gaps, and decays.
#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "page/figures.h"
#include "page/vega.h"
#include "report/palette.h"

namespace sb {
namespace {

const Result& result_of(const Outline& outline, size_t run) {
  return outline.rows.runs[run].result;
}

// Up to four layers: the first, the last, and some evenly spaced between them.
std::set<int> shown_layers(const std::set<int>& all) {
  constexpr size_t most = 4;
  if (all.size() <= most) return all;
  const std::vector<int> layers(all.begin(), all.end());
  std::set<int> out;
  for (size_t i = 0; i < most; ++i) out.insert(layers[i * (layers.size() - 1) / (most - 1)]);
  return out;
}

// Shares of a histogram's bins, the mean over runs.
struct Shares {
  std::vector<double> sum;
  size_t runs = 0;
  double low = 0, high = 1;
  bool log10 = false;
};

void add_gates(const Outline& outline, size_t column, const std::string& gate, PageData& data) {
  const PageColumn& place = outline.columns[column];
  std::vector<ColumnRuns> cells;
  std::set<int> layers;
  for (const auto& cell : runs_of_column(outline, column)) {
    bool any = false;
    for (const size_t run : cell.runs)
      if (const auto& gates = result_of(outline, run).gates)
        for (const auto& figure : gates->gates)
          if (figure.gate == gate) {
            layers.insert(figure.layer);
            any = true;
          }
    if (any) cells.push_back(cell);
  }
  if (cells.empty()) return;
  const std::set<int> shown = shown_layers(layers);
  Figure figure = begin_figure(outline, "gates", &place, cells);
  std::string word;  // names of gates come from files
  for (const char c : gate)
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) word += c;
  figure.id += "-" + word;
  figure.kind = "gates_" + word;
  figure.section = "inside";
  figure.setting = place.name;
  figure.title = gate == "decay"   ? "Decay gate"
                 : gate == "write" ? "Write gate"
                 : gate == "step"  ? "Step size"
                                   : "Gate " + gate;
  figure.title += " on data and in gaps";
  figure.columns = {{"series", "model", "nominal"},  {"layer", "layer", "ordinal"},
                    {"frames", "frames", "nominal"}, {"low", "from", "quantitative"},
                    {"high", "to", "quantitative"},  {"share", "share of values", "quantitative"}};
  bool log10 = false;
  for (const auto& cell : cells)
    for (const int layer : shown)
      for (const bool on_data : {true, false}) {
        Shares shares;
        for (const size_t run : cell.runs) {
          const auto& gates = result_of(outline, run).gates;
          if (!gates) continue;
          for (const auto& one : gates->gates) {
            const GateCounts& counts = on_data ? one.data : one.gap;
            if (one.gate != gate || one.layer != layer || counts.total == 0 || counts.counts.empty()) continue;
            if (shares.runs > 0 && shares.sum.size() != counts.counts.size()) continue;
            shares.sum.resize(counts.counts.size());
            double all = 0;
            for (const int64_t n : counts.counts) all += static_cast<double>(n);
            for (size_t i = 0; i < shares.sum.size(); ++i)
              shares.sum[i] += all > 0 ? static_cast<double>(counts.counts[i]) / all : 0;
            shares.low = one.low;
            shares.high = one.high;
            shares.log10 = one.log10;
            ++shares.runs;
          }
        }
        log10 |= shares.log10;
        const double width = (shares.high - shares.low) / std::max<double>(1, static_cast<double>(shares.sum.size()));
        for (size_t i = 0; i < shares.sum.size(); ++i)
          figure.rows.push_back({outline.series[cell.series].name, layer, on_data ? "data" : "gap",
                                 shares.low + width * static_cast<double>(i),
                                 shares.low + width * static_cast<double>(i + 1),
                                 shares.sum[i] / static_cast<double>(shares.runs)});
      }
  constexpr int plot = 70;
  Json spec = vega_base(series_of(outline, cells), plot);
  spec.erase("width");
  spec.erase("height");
  spec["config"]["range"]["category"] = colours_of(frame_colours());
  spec["facet"] = vega(R"({
      "row": {"field": "series", "type": "nominal", "title": null, "sort": [],
              "header": {"labelAngle": 0, "labelAlign": "left", "labelLimit": 150}},
      "column": {"field": "layer", "type": "ordinal", "title": "layer"}})");
  spec["facet"]["row"]["sort"] = names_of(series_of(outline, cells));
  spec["spec"] = vega(R"({"width": 170, "height": 70,
      "params": [{"name": "pick", "select": {"type": "point", "fields": ["frames"]}, "bind": "legend"}],
      "mark": {"type": "bar", "tooltip": {"content": "data"}},
      "encoding": {
        "x": {"field": "low", "bin": {"binned": true}, "type": "quantitative", "title": "", "scale": {"zero": false}},
        "x2": {"field": "high"},
        "y": {"field": "share", "type": "quantitative", "title": "share", "stack": null},
        "color": {"field": "frames", "type": "nominal", "title": "frames", "scale": {"domain": ["data", "gap"]},
                  "legend": {"orient": "top"}},
        "opacity": {"condition": {"param": "pick", "value": 0.55}, "value": 0.05}}})");
  spec["spec"]["encoding"]["x"]["title"] = log10 ? gate + ", log10" : gate;
  figure.spec = std::move(spec);
  figure.palette = frame_colours();
  figure.height = 90 + (plot + 30) * static_cast<int>(cells.size());
  figure.caption = formatted(
      "Distribution of gate values over test samples, on data frames and in gaps, one value per head or channel: {}{}.",
      averaged_text(cells),
      shown.size() < layers.size() ? formatted("; layers shown: {} (`eval --gates` prints all)", joined(shown, ", "))
                                   : "");
  figure.summary =
      formatted("Histograms of the {} gate of {}, data frames against gap frames.", gate, counted(cells.size(), "row"));
  data.figures.push_back(std::move(figure));
}

void add_selectivity(const Outline& outline, PageData& data) {
  std::map<size_t, ColumnRuns> by_series;
  Figure figure;
  std::vector<std::vector<FigureValue>> rows;
  Json order = Json::array();
  for (size_t c = 0; c < outline.columns.size(); ++c) {
    if (!outline.columns[c].own) continue;
    bool used = false;
    for (const auto& cell : runs_of_column(outline, c))
      for (const bool write : {true, false}) {
        const auto mean = mean_over(outline, cell.runs, [&](const Result& r) {
          return !r.gates ? std::nullopt : write ? r.gates->write_selectivity : r.gates->forget_selectivity;
        });
        if (!mean) continue;
        used = true;
        rows.push_back({outline.series[cell.series].name, outline.columns[c].name, write ? "write" : "forget", *mean});
        by_series[cell.series].series = cell.series;
        if (write || by_series[cell.series].runs.empty())
          by_series[cell.series].runs.insert(by_series[cell.series].runs.end(), cell.runs.begin(), cell.runs.end());
      }
    if (used) order.push_back(outline.columns[c].name);
  }
  if (rows.empty()) return;
  std::vector<ColumnRuns> cells;
  for (auto& [s, cell] : by_series) cells.push_back(std::move(cell));
  figure = begin_figure(outline, "selectivity", nullptr, cells);
  figure.section = "inside";
  figure.title = "Selectivity of gates";
  figure.columns = {{"series", "model", "nominal"},
                    {"column", "column", "nominal"},
                    {"index", "index", "nominal"},
                    {"selectivity", "selectivity", "quantitative"}};
  figure.rows = std::move(rows);
  const auto series = series_of(outline, cells);
  const int step = std::max(40, static_cast<int>(10 * cells.size() + 14));
  const int plot = step * static_cast<int>(order.size());
  Json encoding = {{"y", {{"field", "column"}, {"type", "nominal"}, {"title", nullptr}, {"sort", order}}},
                   {"yOffset", {{"field", "series"}, {"type", "nominal"}, {"sort", names_of(series)}}},
                   {"x", axis_encoding({"selectivity", "selectivity", false, true})}};
  colour_by_series(encoding, series);
  encoding["shape"] = vega(R"({"field": "index", "type": "nominal",
                               "scale": {"domain": ["write", "forget"], "range": ["circle", "triangle-up"]},
                               "legend": {"orient": "top", "title": null}})");
  encoding["opacity"] = dimmed_unless_picked();
  Json spec = vega_base(series, plot);
  spec["params"] = Json::array({legend_pick()});
  spec["mark"] = {{"type", "point"}, {"filled", true}, {"size", 70}, {"tooltip", {{"content", "data"}}}};
  spec["encoding"] = std::move(encoding);
  figure.spec = std::move(spec);
  figure.height = chart_height(series.size(), plot) + 30;
  figure.caption =
      "Write: mean of the write gate on data minus its mean in gaps, averaged over layers. Forget: mean decay in gaps "
      "minus its mean on data. "
      "Both are positive if a network writes on data and keeps its state through gaps, and near zero if it "
      "treats both alike. Means over the runs of a cell.";
  figure.summary = formatted("Write and forget selectivity of {}.", counted(cells.size(), "row"));
  data.figures.push_back(std::move(figure));
}

void add_decays(const Outline& outline, size_t column, PageData& data) {
  static const char* const keys[] = {"q0", "q5", "q25", "q50", "q75", "q95", "q100"};
  constexpr size_t n = 7;
  const PageColumn& place = outline.columns[column];
  std::vector<ColumnRuns> cells;
  std::vector<std::vector<FigureValue>> rows;
  for (const auto& cell : runs_of_column(outline, column)) {
    std::map<int, std::pair<std::vector<double>, size_t>> layers;
    for (const size_t run : cell.runs)
      for (const auto& spectrum : result_of(outline, run).decays) {
        if (spectrum.quantiles.size() != n) continue;
        auto& [sum, count] = layers[spectrum.layer];
        sum.resize(n);
        for (size_t i = 0; i < n; ++i) sum[i] += spectrum.quantiles[i];
        ++count;
      }
    for (const auto& [layer, sums] : layers) {
      std::vector<FigureValue> row = {outline.series[cell.series].name, layer};
      for (const double sum : sums.first) row.emplace_back(sum / static_cast<double>(sums.second));
      rows.push_back(std::move(row));
    }
    if (!layers.empty()) cells.push_back(cell);
  }
  if (rows.empty()) return;
  Figure figure = begin_figure(outline, "decays", &place, cells);
  figure.section = "inside";
  figure.setting = place.name;
  figure.title = "Spectra of decays";
  figure.columns = {{"series", "model", "nominal"}, {"layer", "layer", "ordinal"}};
  for (size_t i = 0; i < n; ++i) {
    const std::string percent(std::string(keys[i]).substr(1));
    figure.columns.push_back({keys[i], percent + " %", "quantitative"});
  }
  figure.rows = std::move(rows);
  const auto series = series_of(outline, cells);
  const Json y = {{"field", "series"},
                  {"type", "nominal"},
                  {"title", nullptr},
                  {"sort", names_of(series)},
                  {"axis", {{"labelLimit", 200}}}};
  const Json offset = {{"field", "layer"}, {"type", "ordinal"}};
  const auto layer = [&](const char* from, const char* to, Json mark) {
    Json encoding = {{"y", y}, {"yOffset", offset}, {"x", axis_encoding({from, "decay per frame"})}};
    if (!to) return Json{{"mark", std::move(mark)}, {"encoding", std::move(encoding)}};
    encoding["x2"] = {{"field", to}};
    colour_by_series(encoding, series);
    encoding["color"]["legend"] = nullptr;
    return Json{{"mark", std::move(mark)}, {"encoding", std::move(encoding)}};
  };
  std::set<int> layers;
  for (const auto& cell : cells)
    for (const size_t run : cell.runs)
      for (const auto& spectrum : result_of(outline, run).decays) layers.insert(spectrum.layer);
  const int plot = static_cast<int>(cells.size()) * std::max(34, 12 * static_cast<int>(layers.size()) + 12);
  Json spec = vega_base(series, plot);
  spec["layer"] =
      Json::array({layer("q0", "q100", {{"type", "rule"}, {"opacity", 0.5}}),
                   layer("q5", "q95", {{"type", "rule"}, {"strokeWidth", 3}, {"opacity", 0.7}}),
                   layer("q25", "q75", {{"type", "rule"}, {"strokeWidth", 7}}),
                   layer("q50", nullptr, vega(R"({"type": "point", "filled": true, "size": 34, "fill": "#ffffff",
                                              "stroke": "#000000", "strokeWidth": 1, "opacity": 1,
                                              "tooltip": {"content": "data"}})"))});
  figure.spec = std::move(spec);
  figure.height = plot + 60;
  figure.caption = formatted(
      "Factor by which a frame multiplies the state, by layer (first layer at the top). Quantiles over channels at 0, "
      "5, "
      "25, 50 (dot), 75, 95 and 100 %, of the mean over data frames or of the fixed decay; {}.",
      averaged_text(cells));
  figure.summary = formatted("Quantiles of decays by layer of {}.", counted(cells.size(), "row"));
  data.figures.push_back(std::move(figure));
}

}  // namespace

void add_inside(const Outline& outline, PageData& data) {
  const size_t before = data.figures.size();
  PageSection section{"inside",
                      "Inside the networks",
                      "inside",
                      {"Gates on data frames and in gaps, decay of states, and kinds of wrong answers."},
                      {}};
  std::set<std::string> gates;
  for (const auto& run : outline.rows.runs)
    if (run.result.gates)
      for (const auto& figure : run.result.gates->gates) gates.insert(figure.gate);
  add_selectivity(outline, data);
  for (const auto& gate : gates)
    for (size_t c = 0; c < outline.columns.size(); ++c)
      if (outline.columns[c].own) add_gates(outline, c, gate, data);
  if (gates.empty()) section.absent.emplace_back("Gates: no run recorded gates.");
  const size_t with_gates = data.figures.size();
  for (size_t c = 0; c < outline.columns.size(); ++c)
    if (outline.columns[c].own) add_decays(outline, c, data);
  if (data.figures.size() == with_gates) section.absent.emplace_back("Spectra of decays: no run recorded decays.");
  const size_t with_decays = data.figures.size();
  add_confusion(outline, data);
  if (data.figures.size() == with_decays) section.absent.emplace_back("Confusion: no run counted wrong answers.");
  if (data.figures.size() > before || !outline.rows.runs.empty()) data.sections.push_back(std::move(section));
}

}  // namespace sb
