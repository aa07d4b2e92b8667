// Shared pieces of Vega-Lite specifications. The data are rows named "rows". The column "series" holds the name of a
// table row or of a reference line; the column "kind" tells which.
#pragma once
#include <string>
#include <vector>

#include "page/data.h"

namespace sb {

struct Axis {
  std::string field, title;
  bool log = false, zero = false;
  bool padded = false;  // adds space at the ends, so that no mark is cut off
};

Json vega(const char* json);  // a piece of a specification
// Title, background, and the colours of these series as the scale "category".
Json vega_base(const std::vector<PageSeries>& series, int plot_height);
Json names_of(const std::vector<PageSeries>& series);
// Encodes the column "series" by colour (with `dashes` also by dashes if a model has several settings), with the legend
// below.
void colour_by_series(Json& encoding, const std::vector<PageSeries>& series, bool dashes = false);
Json legend_pick();  // a click on the legend highlights one series
Json pan_and_zoom();
Json dimmed_unless_picked();  // an opacity
Json point_mark(int size);    // with all values of a point shown on hover
Json axis_encoding(const Axis& axis);

// Line chart over x, with all values of a point shown on hover. If the rows exist: a band from "low" to "high", and
// dashed reference lines with their names.
struct LineParts {
  bool band = false, references = false;
};
Json line_chart(const std::vector<PageSeries>& series, const Axis& x, const Axis& y, LineParts parts, int plot_height);
// A horizontal bar for each series, named on the axis; reference rows as dashed lines with their names.
Json bar_chart(const std::vector<PageSeries>& series, const Axis& x, bool references, int plot_height);
// Pixels that a chart with this plot and its legend takes.
int chart_height(size_t series, int plot_height);

}  // namespace sb
