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
  bool exploratory = false, untuned = false, reported = false, untrained = false;
  for (const auto& question : claims.questions) {
    std::string own;
    for (const auto& [stratum, one] : answers_to(question, verdicts)) {
      const Comparison& c = *one->comparison;
      own += formatted("| {} | {}, {} | {} | {} | {} {} | {} | {} | {}{} |\n", cell(c.name()),
                       where_text(*stratum, *one), evidence_text(*one), first_figure(*one), second_figure(*one),
                       one->effect.n > 0 ? effect_text(c, one->effect.mean) : "–", unit_text(c), interval_text(*one),
                       bounds_cells(*one), verdict_cell(*one), in_brackets(stratum->marks()));
      exploratory |= stratum->exploratory;
      untuned |= stratum->untuned;
      reported |= c.reported;
      untrained |= one->why == Withheld::untrained;
      add_notes(*stratum, *one, below);
    }
    if (own.empty()) continue;
    rows += formatted("| **{}** | | | | | | | | |\n", cell(question.title)) + own;
    if (!question.note.empty()) names.push_back(cell(question.note));
  }
  if (rows.empty()) return "";
  std::string out =
      "The rows repeat comparisons of the [claims](findings/claims.md), which list more of them, at three "
      "[scales](experiments.md#scales): `quick`, for minutes on two cores, `small` and `paper`. Intervals are not "
      "corrected for the number of rows.\n\n"
      "| difference | runs | a | b | a − b | 95 % interval | n-gram | ceiling | verdict |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|---|\n" +
      rows;
  if (!names.empty()) out += "\n" + joined(names, " ") + "\n";
  if (reported) out += "\n*Reported*: no claim asks for this difference, so it has no verdict.\n";
  if (untrained)
    out +=
        "\n*Not trained*: the model is below the n-gram, or near chance, on its own test. On task 2, this test has "
        "only "
        "the longest gaps of the training.\n";
  out += marks_text(exploratory, untuned);
  return below.empty() ? out : out + "\n" + bullets(below);
}

// The elements before the first wrong symbol of task 3, and all.
constexpr int no_wrong_symbols = 50, all_elements = 200;

// Accuracies of models and of the n-gram on a task at one scale, with the share of the accuracy on the first elements
// that models keep on the later ones.
struct Kept {
  std::vector<double> shares;  // by model
  std::set<Unit> grammars;
  double n_gram = NAN;  // on all elements
};

Kept kept_at(const Rows& rows, const Claims& claims, const Scale& scale, int task) {
  Kept out;
  for (const auto& model : paper_models()) {
    Comparison c;
    c.a = {ArmModel{model, {}, {}}};
    c.task = task;
    c.keys = {{"task.length", std::to_string(all_elements)}};
    if (task == 3) c.keys["task.gap_start"] = std::to_string(no_wrong_symbols);
    const Figures figures = figures_of(rows, claims, scale, corrected_protocol, c);
    c.first = no_wrong_symbols;
    const auto before = figures_of(rows, claims, scale, corrected_protocol, c).effects;
    double early = 0, late = 0;
    for (const auto& [unit, accuracy] : before)
      if (const auto at = figures.effects.find(unit); at != figures.effects.end()) {
        early += accuracy * (all_elements - no_wrong_symbols);
        late += at->second * all_elements - accuracy * no_wrong_symbols;
        out.grammars.insert(unit);
      }
    if (early > 0) {
      out.shares.push_back(late / early);
      out.n_gram = mean_over(figures.a.n_grams, before);
    }
  }
  return out;
}

// "86 to 94 % of it at `small` (7 models, 4 grammars)"
std::string kept_text(const Kept& kept, const Scale& scale) {
  const auto [least, most] = std::minmax_element(kept.shares.begin(), kept.shares.end());
  const std::string low = fixed(*least * 100, 0), high = fixed(*most * 100, 0);
  return formatted("{}{} % at {} ({}, {})", low, low == high ? "" : " to " + high, code(scale.name),
                   counted(kept.shares.size(), "model"), counted(kept.grammars.size(), "grammar"));
}

std::string wrong_symbols_text(const Rows& rows, const Claims& claims) {
  std::vector<std::string> with, without, n_grams;
  for (const auto& scale : claims.scales) {
    if (scale.name == "quick") continue;
    const Kept wrong = kept_at(rows, claims, scale, 3), right = kept_at(rows, claims, scale, 1);
    if (wrong.shares.size() < 2) continue;
    with.push_back(kept_text(wrong, scale));
    if (right.shares.size() < 2) continue;
    without.push_back(kept_text(right, scale));
    if (std::isnan(wrong.n_gram) || std::isnan(right.n_gram)) continue;
    // The n-gram's accuracy on the first elements is not recorded; on task 1 they have the same distribution.
    const double late = (wrong.n_gram * all_elements - right.n_gram * no_wrong_symbols) /
                        (right.n_gram * (all_elements - no_wrong_symbols));
    n_grams.push_back(formatted("{} % at {}", fixed(late * 100, 0), code(scale.name)));
  }
  if (with.empty()) return "";
  std::string out = formatted(
      "On task 3 wrong symbols begin at element {}. From there on, corrected models keep {} of their earlier "
      "accuracy.",
      no_wrong_symbols, and_list(with));
  if (!without.empty()) out += formatted(" On task 1, which has no wrong symbols, they keep {}.", and_list(without));
  if (!n_grams.empty())
    out += formatted(" The n-gram keeps about {}, if its earlier accuracy is that of task 1.", and_list(n_grams));
  return out + "\n";
}

}  // namespace

std::string differences_section(const Rows& rows, const Claims& claims, const std::vector<ClaimVerdict>& verdicts) {
  std::vector<std::string> parts;
  for (const std::string& text : {questions_table(claims, verdicts), wrong_symbols_text(rows, claims)})
    if (!text.empty()) parts.push_back(text);
  return "\n## Which differences were measured?\n\n" + (parts.empty() ? "No runs yet.\n" : joined(parts, "\n"));
}

}  // namespace sb
