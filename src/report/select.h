// Internal to rows: chooses the candidate of a group.
#pragma once
#include "report/labels.h"
#include "report/rows.h"

namespace sb {

bool less_value(const std::string& a, const std::string& b);  // absent, then numbers by value, then text

// Whether the accuracy in `valid` was measured on the test set (select_on_test).
bool valid_is_test(const Result& result);
// For groups with several candidates: the number of runs whose selection accuracy is on the test set, and the number of
// runs with any selection accuracy.
std::pair<size_t, size_t> chosen_from_by_test(const Rows& rows);

// Sets `chosen`, `averaged`, `eligible`, `valid` and `missing`, and adds notes on candidates that were not eligible.
void choose(Rows& rows, const Labels& labels);

}  // namespace sb
