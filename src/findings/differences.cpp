// The section "Which differences were measured?": questions with the comparisons that answer them, and accuracy before
// and after wrong symbols.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/comparison_cells.h"
#include "findings/page_claims.h"
#include "findings/page_text.h"
#include "findings/protocol.h"

namespace sb {
namespace {

// Accuracies of the n-gram and of the ceiling: " .834 | .998 "
std::string bounds_cells(const ComparisonVerdict& one) {
  const Statistic statistic = one.comparison->statistic;
  const bool accuracies = statistic == Statistic::accuracy || statistic == Statistic::gap_accuracy;
  const auto text = [&](const std::map<Unit, double>& values) {
    const double mean = mean_over(values, one.figures.effects);
    return !accuracies || std::isnan(mean) ? "–" : share(mean);
  };
  return text(one.figures.a.n_grams) + " | " + text(one.figures.a.ceilings);
}

std::string questions_table(const Claims& claims, const std::vector<ClaimVerdict>& verdicts) {
  std::string rows;
  std::vector<std::string> names, below;
  bool exploratory = false;
  for (const auto& question : claims.questions) {
    std::string own;
    for (const auto& answer : question.answers)
      for (const auto& verdict : verdicts) {
        if (verdict.claim->id != answer.claim) continue;
        for (const auto& stratum : verdict.scales)
          for (const auto& one : stratum.comparisons) {
            const Comparison& c = *one.comparison;
            if (stratum.protocol != corrected_protocol || c.name() != answer.comparison || !one.has_runs()) continue;
            own += formatted("| {} | {}, {} | {} | {} | {} {} | {} | {} | {}{} |\n", cell(c.name()),
                             stratum.scale->name, evidence_text(one), first_figure(one), second_figure(one),
                             one.effect.n > 0 ? effect_text(c, one.effect.mean) : "–", unit_text(c), interval_text(one),
                             bounds_cells(one), verdict_cell(one), stratum.exploratory ? " (exploratory)" : "");
            exploratory |= stratum.exploratory;
            add_notes(stratum, one, below);
          }
      }
    if (own.empty()) continue;
    rows += formatted("| **{}** | | | | | | | | |\n", cell(question.title)) + own;
    if (!question.note.empty()) names.push_back(cell(question.note));
  }
  if (rows.empty()) return "";
  std::string out =
      "Corrected protocol, at three [scales](experiments.md#scales). The rows repeat comparisons of the "
      "[claims](findings/claims.md), which list more of them. Intervals are not corrected for the number of rows.\n\n"
      "| difference | runs | a | b | a − b | 95 % interval | n-gram | ceiling | verdict |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|---|\n" +
      rows;
  if (!names.empty()) out += "\n" + joined(names, " ") + "\n";
  if (exploratory) out += "\n" + exploratory_text();
  return below.empty() ? out : out + "\n" + bullets(below);
}

// The elements before the first wrong symbol of task 3, and all.
constexpr int no_wrong_symbols = 50, all_elements = 200;

// "72 to 74 % at `paper` (7 models, 1 grammar)" for every scale: the accuracy on the later elements, divided by that on
// the first ones.
std::string kept_text(const Rows& rows, const Claims& claims, int task) {
  std::vector<std::string> out;
  for (const auto& scale : claims.scales) {
    if (scale.name == "quick") continue;
    std::vector<double> kept;
    std::set<Unit> grammars;
    for (const auto& model : paper_models()) {
      Comparison c;
      c.a = {ArmModel{model, {}, {}}};
      c.task = task;
      c.keys = {{"task.length", std::to_string(all_elements)}};
      if (task == 3) c.keys["task.gap_start"] = std::to_string(no_wrong_symbols);
      const auto all = figures_of(rows, claims, scale, corrected_protocol, c).effects;
      c.first = no_wrong_symbols;
      const auto before = figures_of(rows, claims, scale, corrected_protocol, c).effects;
      double early = 0, late = 0;
      for (const auto& [unit, accuracy] : before)
        if (const auto at = all.find(unit); at != all.end()) {
          early += accuracy * (all_elements - no_wrong_symbols);
          late += at->second * all_elements - accuracy * no_wrong_symbols;
          grammars.insert(unit);
        }
      if (early > 0) kept.push_back(late / early);
    }
    if (kept.size() < 2) continue;
    const auto [least, most] = std::minmax_element(kept.begin(), kept.end());
    const std::string low = fixed(*least * 100, 0), high = fixed(*most * 100, 0);
    out.push_back(formatted("{}{} % at {} ({}, {})", low, low == high ? "" : " to " + high, code(scale.name),
                            counted(kept.size(), "model"), counted(grammars.size(), "grammar")));
  }
  return and_list(out);
}

std::string wrong_symbols_text(const Rows& rows, const Claims& claims) {
  const std::string with = kept_text(rows, claims, 3), without = kept_text(rows, claims, 1);
  if (with.empty()) return "";
  std::string out = formatted(
      "On task 3 wrong symbols begin at element {}. From there on, accuracy is {} of what it is on the elements "
      "before.",
      no_wrong_symbols, with);
  if (!without.empty()) out += formatted(" On task 1, which has no wrong symbols, it is {}.", without);
  return out + "\n";
}

}  // namespace

std::string differences_section(const Rows& rows, const Claims& claims, const std::vector<ClaimVerdict>& verdicts) {
  std::vector<std::string> parts;
  for (const std::string& text : {questions_table(claims, verdicts), wrong_symbols_text(rows, claims)})
    if (!text.empty()) parts.push_back(text);
  return parts.empty() ? "" : "\n## Which differences were measured?\n\n" + joined(parts, "\n");
}

}  // namespace sb
