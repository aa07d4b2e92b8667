// Every figure of the page, made from the rows of the tables.
#pragma once
#include "page/outline.h"

namespace sb {

// Sections of tasks and of what is inside of networks, with their figures; what was not measured has a line in its
// section.
void add_figures(const Outline& outline, PageData& data);

// By the file that makes them.
void add_overview(const Outline& outline, PageData& data);
void add_curves(const Outline& outline, size_t column, PageData& data, PageSection& section);      // while training
void add_breakdowns(const Outline& outline, size_t column, PageData& data, PageSection& section);  // by position, …
void add_sweeps(const Outline& outline, int task, PageData& data, PageSection& section);  // over complexity, size, gap
// Of the runs behind the lines of the board, whose places in the source these are.
void add_running(const Outline& outline, const std::vector<size_t>& places, PageData& data);
void add_inside(const Outline& outline, PageData& data);
void add_confusion(const Outline& outline, PageData& data);  // of the section "inside" too

// Shared by these.
struct ColumnRuns {
  size_t series = 0;         // place in the outline
  std::vector<size_t> runs;  // of the cell
};
std::vector<ColumnRuns> runs_of_column(const Outline& outline, size_t column);  // cells with a figure
std::vector<PageSeries> series_of(const Outline& outline, const std::vector<ColumnRuns>& cells);
Figure begin_figure(const Outline& outline, const std::string& kind, const PageColumn* column,
                    const std::vector<ColumnRuns>& cells);
// "mean over 3 runs", "over 1 to 3 runs"
std::string averaged_text(const std::vector<ColumnRuns>& cells);
// Mean of what `value` gives of each run where it gives something.
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
