// The table of the page: cells as in `table`, intervals and tests over grammars as in `verdict`.
#pragma once
#include "page/outline.h"
#include "report/statistics.h"

namespace sb {

void add_summary(const Outline& outline, PageData& data);
void add_compare(const Outline& outline, PageData& data);

// Differences a - b on their common grammars.
Estimate paired_difference(const std::map<std::vector<std::string>, double>& a,
                           const std::map<std::vector<std::string>, double>& b);
// "[-1.0, +3.4]" in points, or in the unit of squared errors; "" if there is no interval.
std::string interval_text(const PageColumn& column, const std::optional<Interval>& interval);
std::string p_text(std::optional<double> p);  // "0.210", "< 0.001", "–"

}  // namespace sb
