// Inside of rows: which candidate of a group is chosen.
#pragma once
#include "report/labels.h"
#include "report/rows.h"

namespace sb {

bool less_value(const std::string& a, const std::string& b);  // absent, then numbers by value, then text

// Whether the accuracy under `valid` is on the test set (select_on_test).
bool valid_is_test(const Result& result);
// Runs of groups with several candidates whose accuracy for the choice was on the test set, and all with one.
std::pair<size_t, size_t> chosen_from_by_test(const Rows& rows);

// Fills in `chosen`, `averaged`, `eligible`, `valid` and `missing`, and says in the notes what was not eligible.
void choose(Rows& rows, const Labels& labels);

}  // namespace sb
