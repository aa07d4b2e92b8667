// The prose at the top of docs/findings.md: templates filled in from figures and verdicts.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "findings/arms.h"
#include "findings/comparison_cells.h"
#include "findings/conclusions.h"
#include "findings/page_claims.h"
#include "findings/page_text.h"
#include "findings/protocol.h"

namespace sb {
namespace {

// Of the questions' differences that no claim asks for, at the scale of the choices, those whose interval decides.
std::string answers(const Claims& claims, const std::vector<ClaimVerdict>& verdicts) {
  std::vector<std::string> clear;
  size_t measured = 0, count = 0;
  for (const auto& question : claims.questions) {
    std::vector<std::string> own;
    for (const auto& [stratum, one] : answers_to(question, verdicts)) {
      const Comparison& c = *one->comparison;
      const bool may_be_told = one->why == Withheld::no || one->why == Withheld::open_settings;
      if (stratum->scale->name != claims.choice_scale || !c.reported || !may_be_told || !one->interval) continue;
      ++measured;
      if (one->interval->low > c.delta || one->interval->high < -c.delta)
        own.push_back(formatted("{}: {} {} {}{}", cell(c.name()), effect_text(c, one->effect.mean), unit_text(c),
                                interval_text(*one),
                                one->open.empty() ? "" : in_brackets("settings of " + and_list(one->open) + " open")));
    }
    count += own.size();
    if (!own.empty()) clear.push_back(joined(own, "; ") + in_brackets(cell(question.caveat)));
  }
  if (clear.empty()) return "";
  return formatted(
      "[Questions](#which-differences-were-measured): of their {} differences at {} that no claim asks for, {} {} "
      "clearly larger than 1 point: {}.",
      measured, code(claims.choice_scale), count, count == 1 ? "is" : "are", joined(clear, "; "));
}

// " with 2 layers" if the runs of the claim have another number of layers than the scale.
std::string layers_text(const ScaleVerdict& stratum) {
  for (const auto& one : stratum.comparisons)
    if (const std::string text = other_layers(stratum, one); one.has_runs() && !text.empty()) return " with " + text;
  return "";
}

// What is decided of the claims of each section but the paper's.
std::string other_claims(const std::vector<ClaimVerdict>& verdicts) {
  std::vector<std::string> sections;
  for (const auto& verdict : verdicts)
    if (!verdict.claim->section.empty() && !contains(sections, verdict.claim->section))
      sections.push_back(verdict.claim->section);
  std::vector<std::string> lines;
  for (const auto& section : sections) {
    std::vector<std::string> decided;
    size_t all = 0, unrun = 0;
    for (const auto& verdict : verdicts) {
      if (verdict.claim->section != section) continue;
      ++all;
      unrun +=
          std::none_of(verdict.scales.begin(), verdict.scales.end(), [](const auto& s) { return s.with_runs > 0; });
      std::vector<std::string> places;
      bool any = false;
      for (const auto& stratum : verdict.scales) any |= stratum.with_runs > 0 && stratum.verdict != Verdict::undecided;
      for (const auto& stratum : verdict.scales)
        if (any && stratum.with_runs > 0)
          places.push_back(formatted("{}{} at {}{}", stratum.words(), in_brackets(stratum.marks()),
                                     code(stratum.scale->name), layers_text(stratum)));
      const bool failing = std::any_of(verdict.scales.begin(), verdict.scales.end(), [](const auto& stratum) {
        return std::any_of(stratum.comparisons.begin(), stratum.comparisons.end(),
                           [](const auto& one) { return !one.failing.empty(); });
      });
      if (!places.empty())
        decided.push_back(formatted("“{}”: {}{}", cell(verdict.claim->title), and_list(places),
                                    failing ? ", where the weaker models did not learn their own test either" : ""));
    }
    lines.push_back(formatted("[{}](#{}): {} of {} claim{} {} decided{}{}.", cell(section), heading_anchor(section),
                              decided.empty() ? "none" : std::to_string(decided.size()), all, all == 1 ? "" : "s",
                              decided.size() > 1 ? "are" : "is", decided.empty() ? "" : ", " + joined(decided, "; "),
                              unrun > 0 ? formatted("; {} {} no runs", unrun, unrun == 1 ? "has" : "have") : ""));
  }
  return lines.empty() ? "" : bullets(lines);
}

std::string beyond(const Claims& claims, const std::vector<ClaimVerdict>& verdicts) {
  const std::string first = answers(claims, verdicts), others = other_claims(verdicts);
  if (first.empty() && others.empty()) return "";
  return "\n**And beyond the paper's claims?**\n\n" + (first.empty() ? "" : bullets({first})) + others;
}

// What comparisons of the paper's undecided claims show at one place: "10 of their comparisons are decided, all
// as supported; none of these changes one mechanism of one model. …"
std::string parts_text(const std::vector<ClaimVerdict>& verdicts, size_t place) {
  size_t decided = 0, supported = 0, isolating = 0, withheld = 0;
  for (const auto& verdict : verdicts) {
    if (verdict.claim->number == 0 || verdict.scales[place].verdict != Verdict::undecided) continue;
    for (const auto& one : verdict.scales[place].comparisons) {
      decided += one.is_decided();
      supported += one.is_decided() && one.verdict == Verdict::supported;
      isolating += one.is_decided() && one.isolates();
      withheld += one.would_decide() && one.why == Withheld::open_settings && one.as_run != Verdict::supported;
    }
  }
  if (decided + withheld == 0) return "";
  std::vector<std::string> parts;
  if (decided > 0)
    parts.push_back(formatted("{} of their comparisons {} decided{}; {} of these changes one mechanism of one model",
                              decided, decided == 1 ? "is" : "are",
                              supported == decided ? ", all as supported" : formatted(", {} as supported", supported),
                              isolating == 0 ? "none" : std::to_string(isolating)));
  if (withheld > 0)
    parts.push_back(formatted("{} would be contradicted or equivalent, if no settings were open", withheld));
  return capitalised(joined(parts, ". ")) + ".";
}

std::string claims_brief(const std::vector<ClaimVerdict>& verdicts) {
  std::vector<std::string> sentences, single;
  const auto places = conclusions_of(verdicts);
  for (size_t i = 0; i < places.size(); ++i) {
    const Conclusions& all = places[i];
    if (!all.has_runs()) continue;
    const std::string name = code(all.place->scale->name);
    if (!all.several_grammars) {
      if (!contains(single, name)) single.push_back(name);
      continue;
    }
    std::vector<std::string> parts = {
        "supported: " + (all.supported.empty() ? "none" : claims_text(all.supported)),
        "contradicted: " + (all.contradicted.empty() ? "none" : claims_text(all.contradicted))};
    if (!all.equivalent.empty()) parts.push_back("in part without the claimed effect: " + claims_text(all.equivalent));
    if (!all.undecided.empty()) parts.push_back("undecided: " + numbers_text(all.undecided));
    sentences.push_back(formatted("At {} ({}), {} protocol: {}.", name, all.place->scale->title, all.place->protocol,
                                  joined(parts, "; ")));
    if (const std::string text = parts_text(verdicts, i); !text.empty()) sentences.push_back(text);
  }
  if (const auto counted = counted_claims(verdicts); !counted.empty())
    sentences.push_back(formatted("{} {} no training: parameters are counted.", capitalised(numbers_text(counted)),
                                  counted.size() == 1 ? "needs" : "need"));
  if (!single.empty())
    sentences.push_back(
        formatted("At {}, one grammar was run, so no claim about accuracy is decided there.", and_list(single)));
  if (sentences.empty()) return "No claim of the paper has runs of either protocol yet.\n";
  return formatted(
      "**Which claims hold?** {} [The paper's claims](#the-papers-claims) lists the verdicts and what they rest on.\n",
      joined(sentences, " "));
}

}  // namespace

std::string summary_text(const Claims& claims, const std::vector<ClaimVerdict>& verdicts,
                         const PaperComparison& reproduction, const PaperComparison& corrections) {
  return "The paper *Dissecting Linear Recurrent Models* ([arXiv:2601.12598](https://arxiv.org/abs/2601.12598)) "
         "compares seven sequence models on four [tasks](benchmark.md#the-four-tasks), and draws conclusions about "
         "gates, forgetting, channel mixing and attention. This page repeats part of its experiments with [two "
         "protocols](#the-two-protocols):\n\n"
         "- *Published*: training as in the published code, with four of its faults.\n"
         "- *Corrected*: training without these faults. Settings were chosen on another grammar, with smaller "
         "networks. "
         "If training failed with them, a lower learning rate was found on the reported grammar. The learning rate of "
         "task 3 at `small` was chosen on valid samples of the reported grammars.\n\n"
         "All accuracies are measured on unseen samples. Each has two references: the *ceiling* is the best that a "
         "causal model can expect, and the *n-gram* counts the training samples.\n\n## In short\n\n" +
         reproduction.brief + "\n" + corrections.brief + "\n" + claims_brief(verdicts) + beyond(claims, verdicts);
}

}  // namespace sb
