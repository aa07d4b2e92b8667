#include "findings/page.h"

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "config/protocol.h"
#include "findings/findings_figures.h"
#include "findings/page_claims.h"
#include "findings/page_text.h"
#include "findings/results_table.h"

namespace sb {
namespace {

std::vector<ClaimVerdict> judged(const Rows& rows, const Claims& claims, const std::vector<Claim>& all) {
  std::vector<ClaimVerdict> out;
  for (const auto& claim : all) out.push_back({&claim, page_strata(rows, claims, claim), {}});
  std::stable_sort(out.begin(), out.end(), [](const ClaimVerdict& a, const ClaimVerdict& b) {
    const auto rank = [](const ClaimVerdict& v) { return v.claim->number > 0 ? v.claim->number : 1 << 20; };
    return rank(a) < rank(b);
  });
  return out;
}

// The results at the paper's scale; empty if the claims do not define this scale.
ResultsTable results_of(const Rows& rows, const Claims& claims) {
  const Scale* scale = claims.scale("paper");
  if (!scale) return {};
  return results_table(
      rows, claims, *scale, [](const ConfigMap& config) { return protocol_of(config); },
      [](const Result& result) {
        return result.baselines ? result.baselines->best_n_gram() : std::optional<double>();
      });
}

std::string method_text() {
  return "\nHow verdicts are made: the unit is the grammar. Seeds of initialisation and order are averaged within a "
         "grammar, models are compared on the same grammars, and intervals are Student's t over these differences. "
         "Differences below 1 point do not matter unless a claim says otherwise. “a is above b” is supported if the "
         "95 % interval lies above +1 point, contradicted if it lies below −1 point, equivalent if the 90 % interval "
         "lies within ±1 point, and otherwise undecided. “a is at least b” is supported if the 95 % interval lies "
         "above "
         "−1 point and contradicted if it lies below. A claim is supported if all of its comparisons are; "
         "“contradicted "
         "in k of n” and “equivalent in k of n” count comparisons that stay so under Holm's correction over the n with "
         "runs. Diverged and collapsed runs enter no mean: their comparisons are undecided until the run is repeated. "
         "If both models lie within 2 points of the ceiling, “equivalent” and “at least” would follow from the task "
         "alone, "
         "so these comparisons are undecided “at the ceiling”. "
         "Runs of different protocols are never compared or averaged. The paper's figures are the best of six "
         "combinations of learning rate and warm-up, chosen on its test set; its ± are shown with its differences.\n";
}

}  // namespace

std::string findings_page(const Rows& rows, const Claims& claims, const std::string& source,
                          const ValidCurves& curves) {
  const auto verdicts = judged(rows, claims, claims.claims), deviations = judged(rows, claims, claims.deviations);
  const ResultsTable results = results_of(rows, claims);
  std::string out = "# Findings\n\n" + summary_text(rows, claims, verdicts, deviations, results);
  const auto wrong = above_ceiling(rows);
  if (!wrong.empty()) {
    out += "\n**Runs above their ceiling by more than four standard errors, which no causal model can be:**\n\n";
    for (const auto& line : wrong) out += "- " + cell(line) + "\n";
  }
  out += "\n## Results at the paper's scale\n\n" + results_markdown(results);
  out +=
      "\nTask 4 is the mean over gaps of 20, 50 and 100 frames, trained with at most 10; the paper has no figures. "
      "Tasks 2 and 4 share the n-gram of task 1: noise below 0.2 leaves every symbol "
      "readable.\n";
  out += figures_section(findings_figures(rows, claims, curves), "findings");
  out += "\n## The claims\n\n" + claims_overview(verdicts) + method_text();
  for (const auto& verdict : verdicts) out += claim_section(verdict, claims);
  out += deviations_section(deviations);
  out += choices_section(rows, claims);
  out += undecided_section(verdicts);
  out += "\n## Runs\n\n";
  const auto counts = counts_of(rows);
  if (counts.empty()) out += "- no runs\n";
  for (const auto& line : counts) out += "- " + cell(line) + "\n";
  return out + formatted(
                   "\n`selectivbench experiments findings` writes this page from the runs in {} and from "
                   "`configs/experiments/claims.toml`; nothing in it is typed by hand.\n",
                   code(source));
}

std::string top_table(const Rows& rows, const Claims& claims) {
  return short_results_markdown(results_of(rows, claims));
}

std::string with_table(std::string_view page, std::string_view table, const std::string& path) {
  const size_t begin = page.find(table_begins), end = page.find(table_ends);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin ||
      page.find(table_begins, begin + 1) != std::string_view::npos ||
      page.find(table_ends, end + 1) != std::string_view::npos)
    throw bad_input("experiments findings", formatted("expected the lines {} and {} once each, in {}", table_begins,
                                                      table_ends, printable(path, 400)));
  std::string out(page.substr(0, begin + table_begins.size()));
  return out + "\n\n" + std::string(table) + "\n" + std::string(page.substr(end));
}

}  // namespace sb
