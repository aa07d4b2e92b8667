#include "findings/conclusions.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/arms.h"
#include "findings/choices.h"
#include "findings/comparison_cells.h"
#include "findings/page_claims.h"
#include "findings/page_text.h"

namespace sb {
namespace {

// How far the chosen settings can be trusted; empty if no model was best at an edge.
std::string caveat(const Claims& claims, const std::vector<Choice>& choices) {
  size_t chosen = 0, edges = 0, largest = 0;
  for (const auto& choice : choices) {
    chosen += choice.chosen;
    edges += choice.at_edge;
    largest += choice.at_edge && std::none_of(choices.begin(), choices.end(), [&](const Choice& other) {
                 return other.model == choice.model && parse_finite(other.lr) > parse_finite(choice.lr);
               });
  }
  if (edges == 0) return "";
  std::map<std::string, std::set<Variant>> variants;
  for (const auto& choice : choices) variants[choice.model].insert(choice.variant);
  std::vector<std::string> several;
  for (const auto& [model, tried] : variants)
    if (tried.size() > 1) several.push_back(model_title(model));
  return formatted(
      "Settings were chosen on task 1. Of the {} models tried, {} {} best at the {} learning rate.{} A verdict on "
      "accuracies at {} is withheld if better settings, as tried on task 3, might change it. Better settings were not "
      "tested at gaps longer than in training. Comparisons with chance, retention and drops are not checked in this "
      "way.",
      chosen, edges, edges == 1 ? "was" : "were",
      largest == edges ? "largest"
      : largest == 0   ? "smallest"
                       : "largest or smallest",
      several.empty() ? ""
                      : formatted(" Only {} were tried with several residuals or convolutions.", and_list(several)),
      code(claims.choice_scale));
}

// " (in 1 of 3)" if the verdict is about some of the parts.
std::string share_text(const ScaleVerdict& stratum) {
  const std::string words = stratum.words();
  const size_t at = words.find(" in ");
  return at == std::string::npos ? "" : formatted(" ({})", words.substr(at + 1));
}

// "1 “Gates help recall”"
std::string numbered_title(const Claim& claim) {
  return formatted("{} “{}”", claim.number, cell(claim.title));
}

bool is_counted_only(const ScaleVerdict& stratum) {
  return stratum.with_runs > 0 && stratum.is_counted();
}

}  // namespace

bool Conclusions::has_runs() const {
  return !supported.empty() || !contradicted.empty() || !equivalent.empty() || !undecided.empty();
}

std::vector<Conclusions> conclusions_of(const std::vector<ClaimVerdict>& verdicts) {
  std::vector<Conclusions> out(verdicts.front().scales.size());
  for (size_t s = 0; s < out.size(); ++s) {
    Conclusions& all = out[s];
    all.place = &verdicts.front().scales[s];
    for (const auto& verdict : verdicts) {
      const ScaleVerdict& stratum = verdict.scales[s];
      if (verdict.claim->number == 0 || stratum.with_runs == 0 || is_counted_only(stratum)) continue;
      all.several_grammars |= !stratum.has_one_grammar();
      if (stratum.verdict == Verdict::undecided) {
        all.undecided.push_back(verdict.claim->number);
        if (stratum.needs_more_than_grammars()) all.blocked.push_back(verdict.claim->number);
        continue;
      }
      auto& titles = stratum.verdict == Verdict::supported      ? all.supported
                     : stratum.verdict == Verdict::contradicted ? all.contradicted
                                                                : all.equivalent;
      titles.push_back(numbered_title(*verdict.claim) + share_text(stratum) + in_brackets(cell(verdict.claim->caveat)));
    }
  }
  return out;
}

std::string numbers_text(const std::vector<int>& numbers) {
  std::vector<std::string> words;
  for (const int number : numbers) words.push_back(std::to_string(number));
  return formatted("claim{} {}", words.size() == 1 ? "" : "s", and_list(words));
}

std::vector<int> counted_claims(const std::vector<ClaimVerdict>& verdicts) {
  std::vector<int> out;
  for (const auto& verdict : verdicts)
    if (verdict.claim->number > 0 && std::any_of(verdict.scales.begin(), verdict.scales.end(), is_counted_only))
      out.push_back(verdict.claim->number);
  return out;
}

std::string claims_text(const std::vector<std::string>& titles) {
  return formatted("claim{} {}", titles.size() == 1 ? "" : "s", joined(titles, "; "));
}

std::string conclusion_notes(const Rows& rows, const Claims& claims, const std::vector<ClaimVerdict>& verdicts) {
  std::vector<std::string> lines;
  for (const auto& all : conclusions_of(verdicts))
    if (!all.blocked.empty() && all.several_grammars)
      lines.push_back(formatted(
          "Undecided, and not only for want of grammars ({}, {} protocol): {}. Some of their comparisons are at the "
          "ceiling, have a model below the n-gram on a grammar, depend on settings that are open, or have effects too "
          "close to the smallest difference that matters.",
          code(all.place->scale->name), all.place->protocol, numbers_text(all.blocked)));
  if (const std::string line = caveat(claims, choices_of(rows, claims)); !line.empty()) lines.push_back(line);
  return lines.empty() ? "" : "\n" + bullets(lines);
}

}  // namespace sb
