// Generates docs/findings.md and the results table of the README, from rows only.
#pragma once
#include <string>
#include <string_view>

#include "findings/learning_curves.h"
#include "findings/verdict.h"

namespace sb {

// The page: summary, results, one section per claim, deviations, choices, and what would decide the undecided claims.
// `source` is the name of the results on the page.
std::string findings_page(const Rows& rows, const Claims& claims, const std::string& source,
                          const ValidCurves& curves = {});

// The short form of the results table.
std::string top_table(const Rows& rows, const Claims& claims);

// Replaces the text between the two markers, which are on separate lines. Throws bad_input that names the file unless
// each marker occurs once, in order.
constexpr std::string_view table_begins = "<!-- results: `selectivbench experiments findings` writes this table -->";
constexpr std::string_view table_ends = "<!-- /results -->";
std::string with_table(std::string_view page, std::string_view table, const std::string& path);

}  // namespace sb
