// Makes all figures of the page from the rows of the tables.
#pragma once
#include "page/outline.h"

namespace sb {

// Adds the sections on tasks and on the inside of networks, with their figures. A section has a line for anything that
// was not measured.
void add_figures(const Outline& outline, PageData& data);

// Grouped by source file.
void add_overview(const Outline& outline, PageData& data);
void add_curves(const Outline& outline, size_t column, PageData& data, PageSection& section);      // while training
void add_breakdowns(const Outline& outline, size_t column, PageData& data, PageSection& section);  // by position, …
void add_sweeps(const Outline& outline, const std::string& task, PageData& data,
                PageSection& section);  // over complexity, size, gap
// Figures of the unfinished runs on the board; `places` are their positions in the source.
void add_running(const Outline& outline, const std::vector<size_t>& places, PageData& data);
void add_inside(const Outline& outline, PageData& data);
void add_confusion(const Outline& outline, PageData& data);  // also in the section "inside"

// Shared by these functions.
struct ColumnRuns {
  size_t series = 0;         // index in the outline
  std::vector<size_t> runs;  // of the cell
};
std::vector<ColumnRuns> runs_of_column(const Outline& outline, size_t column);  // cells with a figure
std::vector<PageSeries> series_of(const Outline& outline, const std::vector<ColumnRuns>& cells);
Figure begin_figure(const Outline& outline, const std::string& kind, const PageColumn* column,
                    const std::vector<ColumnRuns>& cells);
// "one run each", "means over 3 runs each", "means over 1 to 3 runs"
std::string averaged_text(const std::vector<ColumnRuns>& cells);
// Mean of value(result) over the runs where it returns a value.
template <class Value>
std::optional<double> mean_over(const Outline& outline, const std::vector<size_t>& runs, const Value& value) {
  double sum = 0;
  size_t n = 0;
  for (const size_t run : runs)
    if (const std::optional<double> one = value(outline.rows.runs[run].result)) {
      sum += *one;
      ++n;
    }
  return n > 0 ? std::optional(sum / static_cast<double>(n)) : std::nullopt;
}

}  // namespace sb
