// While training: loss and accuracy on valid by update.
#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "page/figures.h"
#include "page/vega.h"

namespace sb {
namespace {

struct Spread {
  double sum = 0, low = 0, high = 0;
  int64_t n = 0;
  void add(double value) {
    sum += value;
    low = n == 0 ? value : std::min(low, value);
    high = n == 0 ? value : std::max(high, value);
    ++n;
  }
};

const std::vector<FigureColumn> curve_columns(const std::string& value, const std::string& title) {
  return {{"series", "model", "nominal"},        {"kind", "kind", "nominal"},
          {"update", "update", "quantitative"},  {value, title, "quantitative"},
          {"low", "lowest run", "quantitative"}, {"high", "highest run", "quantitative"},
          {"runs", "runs", "quantitative"}};
}

struct Drawn {
  size_t points = 0;  // of the longest series
  int64_t first = INT64_MAX, last = 0;
  bool band = false;
};

template <class Curve>
Drawn draw(const Outline& outline, const std::vector<ColumnRuns>& cells, Figure& figure, const Curve& curve) {
  Drawn out;
  for (const auto& cell : cells) {
    std::map<int64_t, Spread> points;
    for (const size_t run : cell.runs)
      for (const auto& point : curve(outline.source_run(run).curves)) points[point.update].add(point.value);
    for (const auto& [update, at] : points) {
      figure.rows.push_back({outline.series[cell.series].name, "model", update, at.sum / static_cast<double>(at.n),
                             at.low, at.high, at.n});
      out.band |= at.n > 1;
      out.first = std::min(out.first, update);
      out.last = std::max(out.last, update);
    }
    out.points = std::max(out.points, points.size());
  }
  return out;
}

}  // namespace

void add_curves(const Outline& outline, size_t column, PageData& data, PageSection& section) {
  const PageColumn& place = outline.columns[column];
  const auto cells = runs_of_column(outline, column);
  if (cells.empty()) return;
  const auto series = series_of(outline, cells);
  const std::string of = place.data_setting.empty() ? "" : " (" + place.data_setting + ")";
  constexpr int plot = 300;

  const std::string metric = place.squared ? "Squared error" : "Accuracy";
  const std::string on_valid = place.squared ? "squared error on valid" : "accuracy on valid";
  Figure accuracy = begin_figure(outline, place.squared ? "learning_error" : "learning", &place, cells);
  accuracy.title = metric + " while training";
  accuracy.columns = curve_columns("accuracy", on_valid);
  const Drawn drawn = draw(outline, cells, accuracy, [](const Curves& c) { return c.valid; });
  if (drawn.points == 0) {
    section.absent.push_back(accuracy.title + of + ": the runs' metrics contain no evaluation on valid.");
  } else {
    bool referenced = false;
    const auto reference = [&](const std::string& name, std::optional<double> value) {
      if (!value) return;
      referenced = true;
      const int64_t first = drawn.points == 1 ? drawn.last : std::min<int64_t>(drawn.first, 0);
      for (const int64_t update : std::set<int64_t>{first, drawn.last})
        accuracy.rows.push_back({name, "reference", update, *value, {}, {}, {}});
    };
    reference(place.squared ? "bound" : "ceiling", place.ceiling);
    reference("n-gram", place.n_gram);
    std::vector<std::string> lines;
    if (place.ceiling) lines.emplace_back(place.squared ? "the bound" : "the exact ceiling");
    if (place.n_gram) lines.emplace_back("the n-gram");
    const std::string dashed = lines.empty() ? "" : formatted(" Dashed: {}, measured on test.", joined(lines, " and "));
    if (drawn.points == 1) {  // eval.every = 0: there is no curve
      if (!place.squared) accuracy.kind = "learning_end";
      accuracy.title = metric + " at the end of training";
      accuracy.caption =
          formatted("{} on valid, evaluated once, after the last update: {}.{}", metric, averaged_text(cells), dashed);
      accuracy.summary = formatted("{} on valid after training of {}.", metric, counted(cells.size(), "row"));
      const int bars = 26 * static_cast<int>(series.size()) + 10;
      accuracy.spec = bar_chart(series, {"accuracy", on_valid, false, true}, referenced, bars);
      accuracy.height = bars + 60;
    } else {
      accuracy.caption = formatted("{} on valid by update: {}{}.{}", metric, averaged_text(cells),
                                   drawn.band ? "; band: lowest to highest run" : "", dashed);
      accuracy.summary = formatted("{} on valid over updates of {}.", metric, counted(cells.size(), "row"));
      accuracy.spec = line_chart(series, {"update", "update"}, {"accuracy", on_valid}, {drawn.band, referenced}, plot);
      accuracy.height = chart_height(series.size(), plot);
    }
    data.figures.push_back(std::move(accuracy));
  }

  const std::string loss_title = place.squared ? "squared error" : "loss, nats per frame";
  Figure loss = begin_figure(outline, "loss", &place, cells);
  loss.title = "Loss while training";
  loss.columns = curve_columns("loss", loss_title);
  const Drawn losses = draw(outline, cells, loss, [](const Curves& c) { return c.loss; });
  if (losses.points == 0) {
    section.absent.push_back("Loss while training" + of + ": the runs' metrics contain no rows of training.");
    return;
  }
  loss.caption = formatted(
      "{} of training batches{}, as means over up to {} blocks of updates (packed runs keep "
      "every 25th update): {}{}.",
      place.squared ? "Squared error" : "Cross-entropy", place.squared ? "" : ", nats per frame", most_blocks,
      averaged_text(cells), losses.band ? "; band: lowest to highest run" : "");
  loss.summary = formatted("Training loss over updates of {}.", counted(cells.size(), "row"));
  loss.spec = line_chart(series, {"update", "update"}, {"loss", loss_title}, {losses.band, false}, plot);
  loss.height = chart_height(series.size(), plot);
  data.figures.push_back(std::move(loss));
}

}  // namespace sb
