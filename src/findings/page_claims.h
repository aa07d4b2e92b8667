// Sections of docs/findings.md, in Markdown.
#pragma once
#include <string>
#include <vector>

#include "findings/results_table.h"
#include "findings/verdict.h"

namespace sb {

// Whether the page judges the claim at quick too: claims beyond the paper. The paper's are about larger networks.
bool shows_quick(const Claim& claim);
// The strata that the page judges: both protocols at every scale, at quick only the corrected one of shows_quick().
std::vector<ScaleVerdict> page_strata(const Rows& rows, const Claims& claims, const Claim& claim);

std::string claims_overview(const std::vector<ClaimVerdict>& verdicts);
std::string claim_section(const ClaimVerdict& verdict, const Claims& claims);
std::string deviations_section(const std::vector<ClaimVerdict>& deviations);
std::string choices_section(const Rows& rows, const Claims& claims);
std::string undecided_section(const std::vector<ClaimVerdict>& verdicts);

// Half a page of prose: what was reproduced, what changed, and the verdicts.
std::string summary_text(const Rows& rows, const Claims& claims, const std::vector<ClaimVerdict>& verdicts,
                         const std::vector<ClaimVerdict>& deviations, const ResultsTable& table);

}  // namespace sb
