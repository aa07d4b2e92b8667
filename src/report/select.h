// Inside of rows: which candidate of a group is chosen.
#pragma once
#include "report/labels.h"
#include "report/rows.h"

namespace sb {

bool less_value(const std::string& a, const std::string& b);  // absent, then numbers by value, then text

// Fills in `chosen`, `eligible`, `valid` and `missing`, and says in the notes what was not eligible.
void choose(Rows& rows, const Labels& labels);

}  // namespace sb
