// Figures of unfinished runs: training loss, and measurements on valid so far. These runs are in no table yet.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "page/figures.h"
#include "page/vega.h"
#include "report/palette.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

constexpr size_t most_running = 24;

struct Running {
  const BoardLine* line = nullptr;
  const Curves* curves = nullptr;
  bool squared = false;
};

// Whether loss and measurements are squared errors. Before the first measurement, the kind of the task tells.
bool is_squared(const SourceRun& run) {
  const auto kind = run.read->config.find("task.kind");
  if (!run.curves.valid.empty() || kind == run.read->config.end()) return run.curves.squared;
  return usual_loss(plain_value(kind->second)) == Loss::squared_error;
}

struct Drawing {
  const char *kind, *title, *value, *axis, *caption;
  std::vector<CurvePoint> Curves::*curve;
  bool squared;
};

const Drawing drawings[] = {
    {"loss", "Loss while training", "loss", "loss, nats per frame",
     "Cross-entropy of training batches as means over blocks of updates", &Curves::loss, false},
    {"learning", "Accuracy while training", "accuracy", "accuracy on valid",
     "Accuracy on valid at the evaluations so far", &Curves::valid, false},
    {"squared_loss", "Squared error while training", "loss", "squared error of training batches",
     "Squared error of training batches as means over blocks of updates", &Curves::loss, true},
    {"squared_learning", "Squared error on valid while training", "error", "squared error on valid",
     "Squared error on valid at the evaluations so far", &Curves::valid, true}};

void add_drawing(const Drawing& what, const std::vector<Running>& runs, size_t left_out, PageData& data) {
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
  figure.caption = formatted("{}, one line per run that is not finished{}.", what.caption,
                             left_out > 0 ? formatted("; {} more not drawn", left_out) : "");
  figure.summary = formatted("{} of unfinished runs, {} so far.", what.title, counted(series.size(), "line"));
  figure.spec = line_chart(series, {"update", "update"}, {value, axis}, {}, plot);
  figure.height = chart_height(series.size(), plot);
  data.figures.push_back(std::move(figure));
}

}  // namespace

void add_running(const Outline& outline, const std::vector<size_t>& places, PageData& data) {
  std::vector<Running> runs;
  for (size_t i = 0; i < places.size(); ++i) {
    const SourceRun& run = *outline.source.runs[places[i]];
    runs.push_back({&data.board[i], &run.curves, is_squared(run)});
  }
  std::stable_partition(runs.begin(), runs.end(), [](const Running& run) { return run.line->state == "running"; });
  std::vector<Running> drawn[2];  // by loss: cross-entropy, squared error
  size_t left_out[2] = {0, 0};
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i < most_running)
      drawn[runs[i].squared].push_back(runs[i]);
    else
      ++left_out[runs[i].squared];
  }
  for (const Drawing& what : drawings) add_drawing(what, drawn[what.squared], left_out[what.squared], data);
}

}  // namespace sb
