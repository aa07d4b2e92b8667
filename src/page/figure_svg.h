// The main figures as SVG, for a page that was built without what draws Vega-Lite.
#pragma once
#include <string>
#include <vector>

#include "page/data.h"

namespace sb {

// The overview, accuracies while training and accuracies over gap lengths; "" of other figures.
std::string figure_svg(const Figure& figure, const std::vector<PageSeries>& series);

}  // namespace sb
