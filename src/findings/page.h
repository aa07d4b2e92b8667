// docs/findings.md and the results table of the README, made from rows alone.
#pragma once
#include <string>
#include <string_view>

#include "findings/verdict.h"

namespace sb {

// Prose, results, one section per claim, deviations, choices, and what would decide the undecided. `source` is how the
// page names the results.
std::string findings_page(const Rows& rows, const Claims& claims, const std::string& source);

// The short form of its table of results.
std::string top_table(const Rows& rows, const Claims& claims);

// The page with the text between the two markers replaced, the markers on lines of their own. Throws bad_input that
// names the file unless there is one of each, in order.
constexpr std::string_view table_begins = "<!-- results: `selectivbench experiments findings` writes this table -->";
constexpr std::string_view table_ends = "<!-- /results -->";
std::string with_table(std::string_view page, std::string_view table, const std::string& path);

}  // namespace sb
