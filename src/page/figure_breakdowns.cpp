// Where accuracy is lost: by position, frames into a gap, elements since the state was certain, and its entropy.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/text.h"
#include "page/figures.h"
#include "page/vega.h"

namespace sb {
namespace {

constexpr int breakdown_height = 260;
constexpr size_t most_positions = 100;

const Measurement* measured(const Outline& outline, size_t run, size_t column) {
  const auto points = points_of(outline.rows.runs[run]);
  const auto at = points.find(outline.points[column]);
  return at == points.end() ? nullptr : at->second;
}

void finish(Figure& figure, const std::vector<PageSeries>& series, const Axis& x, bool references, PageData& data) {
  figure.spec = line_chart(series, x, {"accuracy", "accuracy"}, {false, references}, breakdown_height);
  figure.height = chart_height(series.size(), breakdown_height);
  data.figures.push_back(std::move(figure));
}

// Blocks of positions; in each the mean over runs of what they have there.
void add_positions(const Outline& outline, size_t column, const std::vector<ColumnRuns>& cells, PageData& data,
                   PageSection& section) {
  const PageColumn& place = outline.columns[column];
  size_t length = 0;
  for (const auto& cell : cells)
    for (const size_t run : cell.runs)
      if (const auto* m = measured(outline, run, column)) length = std::max(length, m->by_position.size());
  if (length == 0) {
    if (place.own) section.absent.push_back("Accuracy by position: not measured.");
    return;
  }
  Figure figure = begin_figure(outline, "position", &place, cells);
  figure.title = "Accuracy by position";
  figure.columns = {{"series", "model", "nominal"},
                    {"kind", "kind", "nominal"},
                    {"position", "element of the sample", "quantitative"},
                    {"accuracy", "accuracy", "quantitative"}};
  const size_t block = (length + most_positions - 1) / most_positions;
  for (const auto& cell : cells)
    for (size_t begin = 0; begin < length; begin += block) {
      double sum = 0;
      size_t n = 0;
      for (const size_t run : cell.runs)
        if (const auto* m = measured(outline, run, column))
          for (size_t i = begin; i < std::min(begin + block, m->by_position.size()); ++i)
            if (m->by_position[i]) {
              sum += *m->by_position[i];
              ++n;
            }
      if (n > 0)
        figure.rows.push_back({outline.series[cell.series].name, "model", begin, sum / static_cast<double>(n)});
    }
  std::vector<std::string> references;
  for (const auto& [name, value] : {std::pair{"ceiling", place.ceiling}, {"n-gram", place.n_gram}}) {
    if (!value) continue;
    references.emplace_back(name);
    for (const size_t at : {size_t{0}, (length - 1) / block * block})
      figure.rows.push_back({name, "reference", at, *value});
  }
  figure.caption =
      formatted("Accuracy of the n-th element of a sample, counted from 0: {}{}.{}", averaged_text(cells),
                block > 1 ? formatted(", in blocks of {} elements", block) : "",
                references.empty() ? "" : formatted(" Dashed: {} of all positions.", joined(references, " and ")));
  figure.summary = formatted("Accuracy by position in the sample of {}.", counted(cells.size(), "row"));
  finish(figure, series_of(outline, cells), {"position", "element of the sample"}, place.ceiling || place.n_gram, data);
}

struct Breakdown {
  const char *kind, *title, *axis, *caption;
  std::vector<AccuracyBin> Measurement::*bins;
};
const Breakdown breakdowns[] = {
    {"gap_frame", "Accuracy by frames since the last data frame", "frames since the data frame",
     "Accuracy of single frames, by the frame's own probabilities: 0 is the data frame, g the g-th frame of its gap. "
     "It falls if the state is lost in the gap.",
     &Measurement::by_gap_frame},
    {"since_certain", "Accuracy by elements since the state was certain", "elements since certain",
     "Elements since the exact filter was last certain of the state; 0: certain now. Low at 0: wrong although nothing "
     "is ambiguous.",
     &Measurement::by_since_certain},
    {"entropy", "Accuracy by entropy of the posterior", "entropy of the exact filter, nats, from",
     "Accuracy by the entropy of the exact filter's posterior, a measure of how hard the element is. Bins are named by "
     "their lower end.",
     &Measurement::by_entropy}};

void add_bins(const Outline& outline, size_t column, const std::vector<ColumnRuns>& cells, const Breakdown& what,
              PageData& data, PageSection& section) {
  const PageColumn& place = outline.columns[column];
  Figure figure = begin_figure(outline, what.kind, &place, cells);
  figure.title = what.title;
  figure.columns = {{"series", "model", "nominal"},
                    {"kind", "kind", "nominal"},
                    {"from", what.axis, "quantitative"},
                    {"accuracy", "accuracy", "quantitative"},
                    {"count", "counted", "quantitative"}};
  size_t most = 0;
  for (const auto& cell : cells) {
    std::map<double, std::pair<double, int64_t>> pooled;
    for (const size_t run : cell.runs)
      if (const auto* m = measured(outline, run, column))
        for (const auto& bin : m->*what.bins) {
          auto& [sum, count] = pooled[bin.from];
          sum += bin.accuracy * static_cast<double>(bin.count);
          count += bin.count;
        }
    for (const auto& [from, bin] : pooled)
      figure.rows.push_back(
          {outline.series[cell.series].name, "model", from, bin.first / static_cast<double>(bin.second), bin.second});
    most = std::max(most, pooled.size());
  }
  if (most == 0) {
    if (place.own) section.absent.push_back(std::string(what.title) + ": not measured.");
    return;
  }
  figure.caption = std::string(what.caption) + " Counts of a cell's runs are pooled.";
  figure.summary = formatted("{} of {}.", what.title, counted(cells.size(), "row"));
  finish(figure, series_of(outline, cells), {"from", what.axis}, false, data);
}

}  // namespace

void add_breakdowns(const Outline& outline, size_t column, PageData& data, PageSection& section) {
  const auto cells = runs_of_column(outline, column);
  if (cells.empty()) return;
  add_positions(outline, column, cells, data, section);
  for (const auto& what : breakdowns) add_bins(outline, column, cells, what, data, section);
}

}  // namespace sb
