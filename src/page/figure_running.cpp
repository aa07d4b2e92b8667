#include <set>
// Runs that go on: their loss, and what they measured on valid so far. They are in no table yet.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "page/figures.h"
#include "page/vega.h"
#include "report/palette.h"

namespace sb {
namespace {

constexpr size_t most_running = 24;

struct Running {
  const BoardLine* line = nullptr;
  const Curves* curves = nullptr;
};

struct Drawing {
  const char *kind, *title, *value, *axis, *caption;
  std::vector<CurvePoint> Curves::*curve;
};

void add_drawing(const Drawing& what, const std::vector<Running>& runs, size_t all, PageData& data) {
  const std::string value = what.value, axis = what.axis;
  Figure figure;
  figure.id = std::string("running-") + what.kind;
  figure.kind = std::string("running_") + what.kind;
  figure.section = "board";
  figure.title = what.title;
  figure.columns = {{"series", "run", "nominal"},
                    {"kind", "kind", "nominal"},
                    {"update", "update", "quantitative"},
                    {value, axis, "quantitative"}};
  std::vector<PageSeries> series;
  std::map<std::string, int> dashes;
  std::set<std::string> models;
  for (const auto& model : data.models) models.insert(model.name);
  for (const auto& run : runs) models.insert(run.line->model);
  const auto colours = model_colours_of(models);
  for (const auto& run : runs) {
    const auto& points = run.curves->*what.curve;
    if (points.empty()) continue;
    const std::string& model = run.line->model;
    series.push_back({"", run.line->name, model, "", colours.at(model), dashes[model]++});
    figure.palette.push_back(series.back().colour);
    figure.runs.push_back(run.line->key);
    for (const auto& point : points) figure.rows.push_back({run.line->name, "model", point.update, point.value});
  }
  if (series.empty()) return;
  constexpr int plot = 260;
  figure.caption = formatted("{}, a line a run that is not finished{}.", what.caption,
                             all > runs.size() ? formatted("; the first {} of {}", runs.size(), all) : "");
  figure.summary = formatted("{} of unfinished runs, {} so far.", what.title, counted(series.size(), "line"));
  figure.spec = line_chart(series, {"update", "update"}, {value, axis}, {}, plot);
  figure.height = chart_height(series.size(), plot);
  data.figures.push_back(std::move(figure));
}

}  // namespace

void add_running(const Outline& outline, const std::vector<size_t>& places, PageData& data) {
  std::vector<Running> runs;
  for (size_t i = 0; i < places.size(); ++i) runs.push_back({&data.board[i], &outline.source.runs[places[i]]->curves});
  std::stable_partition(runs.begin(), runs.end(), [](const Running& run) { return run.line->state == "running"; });
  const size_t all = runs.size();
  runs.resize(std::min(all, most_running));
  add_drawing({"loss", "Loss while training", "loss", "loss, nats a frame",
               "Cross-entropy of training batches as means over blocks of updates", &Curves::loss},
              runs, all, data);
  add_drawing({"learning", "Accuracy while training", "accuracy", "accuracy on valid",
               "Accuracy on valid at the evaluations so far", &Curves::valid},
              runs, all, data);
}

}  // namespace sb
