// Pieces of Vega-Lite specifications that figures share. Data are rows by the name "rows"; the column "series" holds
// the name of a row of the tables or of a reference line, "kind" tells which.
#pragma once
#include <string>
#include <vector>

#include "page/data.h"

namespace sb {

struct Axis {
  std::string field, title;
  bool log = false, zero = false;
  bool padded = false;  // no mark is cut in two at its ends
};

// Title, ground and the colours of these series as the scale "category".
Json vega_base(const std::vector<PageSeries>& series, int plot_height);
// Colour (and dashes where settings of one model need them) by the column "series", with the legend beneath.
void colour_by_series(Json& encoding, const std::vector<PageSeries>& series);
Json legend_pick();  // a click on the legend shows one series
Json pan_and_zoom();
Json dimmed_unless_picked();  // an opacity
Json axis_encoding(const Axis& axis);

// Lines over x, points with every figure at hand on hover; where there are such rows, a band from "low" to "high" and
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
