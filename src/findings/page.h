// docs/findings.md and the top table of the README, made from rows alone.
#pragma once
#include <string>
#include <string_view>

#include "findings/verdict.h"

namespace sb {

// One section a claim, verdict first. `source` is how the page names the results.
std::string findings_page(const Rows& rows, const Claims& claims, const std::string& source);

// The paper's models on its four tasks: the paper's figures, ours at every scale that has any, the ceiling.
std::string top_table(const Rows& rows, const Claims& claims);

// The page with what stands between the two markers replaced, the markers on lines of their own. Throws bad_input that
// names the file where there is not one of each, in order.
constexpr std::string_view table_begins = "<!-- results: `selectivbench experiments findings` writes this table -->";
constexpr std::string_view table_ends = "<!-- /results -->";
std::string with_table(std::string_view page, std::string_view table, const std::string& path);

}  // namespace sb
