// Rows and columns of the page, and the position of each cell and run.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "page/data.h"
#include "page/source.h"
#include "report/labels.h"

namespace sb {

struct Outline {
  const SourceContent& source;
  const Rows& rows;
  Labels labels;
  std::vector<PageModel> models;
  std::vector<PageSeries> series;
  std::vector<PageColumn> columns;
  std::vector<Point> points;          // what each column measures
  std::vector<std::string> settings;  // what tells each column apart from others of its task
  struct Place {
    size_t series = 0, column = 0;
  };
  std::vector<Place> cells;  // by index in Rows::cells
  std::vector<std::vector<size_t>>
      column_cells;               // cells of a column in the order of series, including cells without a figure
  std::vector<std::string> keys;  // of Rows::runs
  std::vector<size_t> series_of_group;
  std::vector<size_t> own_column_of_group;

  const SourceRun& source_run(size_t run) const { return *source.runs[source.by_folder.at(rows.runs[run].folder)]; }
  std::vector<std::string> keys_of(const std::vector<size_t>& runs) const;
};
Outline make_outline(const SourceContent& source);

std::string task_section(const std::string& task);           // id of its section
bool less_task(const std::string& a, const std::string& b);  // numbers first
std::string symbol_name(int symbol);                         // "#", "A", …
std::string points_text(double difference);                  // "+1.2": a difference of accuracies in points
// The same for a column: "+0.0123" for squared errors.
std::string difference_text(const PageColumn& column, double difference);

// Runs that are in no row, counted by group: unfinished, damaged, …
struct MissingCounts {
  size_t unfinished = 0, damaged = 0, other = 0;
};
std::map<size_t, MissingCounts> missing_by_group(const Outline& outline);

}  // namespace sb
