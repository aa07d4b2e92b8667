// Generates docs/findings.md, its two subpages and the results table of the README, from rows only.
#pragma once
#include <string>
#include <string_view>

#include "findings/learning_curves.h"
#include "findings/verdict.h"

namespace sb {

struct FindingsPages {
  std::string front;    // docs/findings.md: summary, results and a table of verdicts
  std::string claims;   // docs/findings/claims.md: one section per claim, with its comparisons
  std::string details;  // docs/findings/details.md: deviations, choices, networks, learning curves, what is missing
};

// `source` is the name of the results on the pages. Figures are in the folder findings/ next to the front page.
FindingsPages findings_pages(const Rows& rows, const Claims& claims, const std::string& source,
                             const ValidCurves& curves = {});

// The short form of the results table.
std::string top_table(const Rows& rows, const Claims& claims);

// Replaces the text between the two markers, which are on separate lines. Throws bad_input that names the file unless
// each marker occurs once, in order.
constexpr std::string_view table_begins = "<!-- results: `selectivbench experiments findings` writes this table -->";
constexpr std::string_view table_ends = "<!-- /results -->";
std::string with_table(std::string_view page, std::string_view table, const std::string& path);

}  // namespace sb
