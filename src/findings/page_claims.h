// Sections of docs/findings.md and its subpages, in Markdown.
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

// The claim's title, linked to its section on `page`.
std::string claim_link(const Claim& claim, const std::string& page);
// A table of verdicts: a row per claim, linked to its section on `page`, and a column per stratum with runs.
std::string claims_overview(const std::vector<ClaimVerdict>& verdicts, const std::string& page);
// A table of the comparisons of all claims that are decided, or would be if no settings were open, and what the
// comparisons of one model with itself say; empty if there are none.
std::string decided_table(const std::vector<ClaimVerdict>& verdicts);
// A table of all comparisons with runs above quick that count for a claim; empty if there are none.
std::string measured_table(const std::vector<ClaimVerdict>& verdicts);
std::string marks_text(bool exploratory, bool untuned);  // what the words mean
std::string claim_section(const ClaimVerdict& verdict, const Claims& claims);
std::string deviations_section(const std::vector<ClaimVerdict>& deviations);
std::string choices_section(const Rows& rows, const Claims& claims);
std::string undecided_section(const std::vector<ClaimVerdict>& verdicts, const std::vector<std::string>& missing);

// A comparison of two columns of the results table at the paper's scale.
struct PaperComparison {
  std::string brief;  // of the summary, one paragraph
  std::string text;   // of the section below the table
};
// Distance and order of the reproduced numbers.
PaperComparison reproduction_text(const Rows& rows, const Claims& claims, const ResultsTable& table);
// What the corrected protocol changes, and why.
PaperComparison corrections_text(const Rows& rows, const Claims& claims, const ResultsTable& table,
                                 const std::vector<ClaimVerdict>& deviations);
// Introduction and summary: what was reproduced, what changed, and the verdicts.
std::string summary_text(const Claims& claims, const std::vector<ClaimVerdict>& verdicts,
                         const PaperComparison& reproduction, const PaperComparison& corrections);
// What the verdicts on the paper's claims rest on, below their table.
std::string conclusion_notes(const Rows& rows, const Claims& claims, const std::vector<ClaimVerdict>& verdicts);
// Questions with the comparisons that answer them, and accuracy after wrong symbols.
std::string differences_section(const Rows& rows, const Claims& claims, const std::vector<ClaimVerdict>& verdicts);

}  // namespace sb
