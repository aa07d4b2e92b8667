// The main figures as SVG, for a page of a program that was built without Vega.
#pragma once
#include <string>
#include <vector>

#include "page/data.h"

namespace sb {

// Draws the overview, accuracy during training and accuracy over gap length; returns "" for other figures.
std::string figure_svg(const Figure& figure, const std::vector<PageSeries>& series);

}  // namespace sb
