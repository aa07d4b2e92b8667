// The prose at the top of docs/findings.md: templates filled in from figures and verdicts.
#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/choices.h"
#include "findings/comparison_cells.h"
#include "findings/page_claims.h"
#include "findings/page_text.h"
#include "findings/protocol.h"

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

// "claims 1 “Gates help recall”; 3 “…”"
std::string claims_text(const std::vector<std::string>& titles) {
  return formatted("claim{} {}", titles.size() == 1 ? "" : "s", joined(titles, "; "));
}

// Bullets: the claims by verdict, what was counted, and what one grammar cannot decide.
std::string conclusions(const Claims& claims, const std::vector<ClaimVerdict>& verdicts,
                        const std::vector<Choice>& choices) {
  static constexpr const char* words[] = {"Supported", "Contradicted", "In part without the claimed effect"};
  std::vector<std::string> lines;
  std::vector<std::string> counted, single;  // claims that need no training; places with one grammar
  for (size_t s = 0; s < verdicts.front().scales.size(); ++s) {
    std::vector<std::string> titles[3], undecided, blocked, untested;
    bool more = false;  // a claim has more than one grammar
    for (const auto& verdict : verdicts) {
      if (verdict.claim->number == 0) continue;
      const ScaleVerdict& stratum = verdict.scales[s];
      if (stratum.with_runs > 0 && stratum.is_counted()) {
        const std::string text = formatted("“{}” ({})", cell(verdict.claim->title), to_string(stratum.verdict));
        if (!contains(counted, text)) counted.push_back(text);
        continue;
      }
      more |= stratum.with_runs > 0 && !stratum.has_one_grammar();
      if (stratum.with_runs == 0)
        untested.push_back(numbered_title(*verdict.claim));
      else if (stratum.verdict == Verdict::undecided)
        (stratum.needs_more_than_grammars() ? blocked : undecided).push_back(numbered_title(*verdict.claim));
      else
        titles[static_cast<size_t>(stratum.verdict)].push_back(formatted(
            "{}{}{}", numbered_title(*verdict.claim), share_text(stratum), in_brackets(cell(verdict.claim->caveat))));
    }
    const ScaleVerdict& first = verdicts.front().scales[s];
    const std::string where = formatted("{}, {} protocol", code(first.scale->name), first.protocol);
    std::vector<std::string> parts;
    for (const Verdict verdict : {Verdict::supported, Verdict::contradicted, Verdict::equivalent})
      if (const auto& all = titles[static_cast<size_t>(verdict)]; !all.empty())
        parts.push_back(formatted("{} ({}): {}.", words[static_cast<size_t>(verdict)], where, claims_text(all)));
    if (!undecided.empty()) parts.push_back(formatted("Undecided ({}): {}.", where, claims_text(undecided)));
    if (!blocked.empty())
      parts.push_back(
          formatted("Undecided, and not only for want of grammars ({}): {}. Some of their comparisons are at the "
                    "ceiling, have a model below the n-gram on a grammar, depend on settings that are open, or have "
                    "effects too close to "
                    "the smallest difference that matters.",
                    where, claims_text(blocked)));
    if (parts.empty()) continue;
    if (!more) {
      single.push_back(formatted("{} ({})", code(first.scale->name), first.protocol));
      continue;
    }
    if (titles[static_cast<size_t>(Verdict::contradicted)].empty())
      parts.insert(parts.begin() + !titles[static_cast<size_t>(Verdict::supported)].empty(),
                   formatted("Contradicted ({}): none.", where));
    lines.insert(lines.end(), parts.begin(), parts.end());
    if (!untested.empty()) lines.push_back(formatted("No runs yet ({}): {}.", where, claims_text(untested)));
  }
  if (std::any_of(verdicts.begin(), verdicts.end(), [&](const ClaimVerdict& verdict) {
        if (verdict.claim->number == 0) return false;
        return std::any_of(verdict.scales.begin(), verdict.scales.end(), [&](const ScaleVerdict& stratum) {
          return stratum.verdict == Verdict::undecided &&
                 std::any_of(stratum.comparisons.begin(), stratum.comparisons.end(),
                             [](const auto& one) { return one.is_decided(); });
        });
      }))
    lines.emplace_back("Some undecided claims have decided comparisons, listed [below](#the-papers-claims).");
  if (!single.empty())
    lines.push_back(formatted("Only one grammar was run, so no claim is decided: {}.", and_list(single)));
  if (!counted.empty()) lines.push_back(formatted("Counted, not trained: {}.", and_list(counted)));
  if (lines.empty()) return "No claim of the paper has runs of either protocol yet.\n";
  if (const std::string line = caveat(claims, choices); !line.empty()) lines.push_back(line);
  std::vector<std::string> scales;
  for (const auto& scale : claims.scales)
    if (scale.name != "quick") scales.push_back(formatted("{} has {}", code(scale.name), scale.title));
  return formatted("**Which claims hold?** {}.\n\n", capitalised(joined(scales, "; "))) + bullets(lines);
}

// Answers to the questions of the page at the scale of the choices whose interval decides, in one line.
std::string answers(const Claims& claims, const std::vector<ClaimVerdict>& verdicts) {
  std::vector<std::string> parts;
  for (const auto& question : claims.questions)
    for (const auto& [stratum, one] : answers_to(question, verdicts)) {
      const Comparison& c = *one->comparison;
      const bool may_be_told = one->why == Withheld::no || (c.reported && one->why == Withheld::open_settings);
      if (stratum->scale->name != claims.choice_scale || !may_be_told || !one->interval) continue;
      if (one->interval->low > c.delta || one->interval->high < -c.delta)
        parts.push_back(formatted("{}: {} {} {}{}", cell(c.name()), effect_text(c, one->effect.mean), unit_text(c),
                                  interval_text(*one), in_brackets(cell(question.caveat))));
    }
  if (parts.empty()) return "";
  return formatted(
      "[Other questions](#which-differences-were-measured), {0}: {1}. At {0}, no other difference that no claim "
      "asks for is clearly larger than 1 point, among models that were trained.",
      code(claims.choice_scale), joined(parts, "; "));
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
    lines.push_back(formatted("[{}](#{}): {} claim{}, {}{}.", cell(section), heading_anchor(section), all,
                              all == 1 ? "" : "s",
                              decided.empty() ? "none decided" : joined(decided, "; ") + "; no other is decided",
                              unrun > 0 ? formatted(", {} without runs", unrun) : ""));
  }
  return lines.empty() ? "" : bullets(lines);
}

std::string beyond(const Claims& claims, const std::vector<ClaimVerdict>& verdicts) {
  const std::string first = answers(claims, verdicts), others = other_claims(verdicts);
  if (first.empty() && others.empty()) return "";
  return "\n**And beyond the paper's claims?**\n\n" + (first.empty() ? "" : bullets({first})) + others;
}

}  // namespace

std::string summary_text(const Rows& rows, const Claims& claims, const std::vector<ClaimVerdict>& verdicts,
                         const PaperComparison& reproduction, const PaperComparison& corrections) {
  return "The paper *Dissecting Linear Recurrent Models* ([arXiv:2601.12598](https://arxiv.org/abs/2601.12598)) "
         "compares seven sequence models and draws conclusions about gates, forgetting, channel mixing and attention. "
         "On its [tasks](benchmark.md#the-four-tasks), models name the hidden states of a random automaton with "
         "ambiguous symbols. Task 2 adds gaps of blanks and noise, task 3 wrong symbols, and task 4 tests the networks "
         "of task 2 on longer gaps. Two references go with every accuracy: the *ceiling* is the best that a causal "
         "model can expect, and "
         "the *n-gram* counts the training samples.\n\n"
         "This page repeats part of the experiments with two protocols:\n\n"
         "- *Published*: training as in the published code, with these of its "
         "[faults](findings/details.md#deviations-from-the-published-protocol): dropout stops, the first learning rate "
         "is 0, the Transformer has a double residual, and the delta family trains in bfloat16. The runs use this "
         "program's kernels, mixed precision where the published code uses float32, and gap decisions that do not "
         "repeat.\n"
         "- *Corrected*: training without dropout and without these faults. Settings were [chosen on another "
         "grammar](findings/details.md#what-was-chosen) with smaller networks, those of `small`. A model whose "
         "training failed with them has a lower learning rate. Where the reported grammars have runs at several rates, "
         "as on task 3 at `small`, the best on their valid samples counts, unless both sides of a comparison [need one "
         "rate](verdicts.md#open-settings). Settings at `quick` were not chosen by accuracy.\n\n"
         "All runs are tested on unseen samples. [Which differences were "
         "measured](#which-differences-were-measured) answers questions, [claims](findings/claims.md) shows every "
         "comparison, "
         "[details](findings/details.md) what each deviation costs and what is missing, and [verdicts](verdicts.md) "
         "defines the words.\n\n## In short\n\n" +
         reproduction.text + "\n" + corrections.text + "\n" + conclusions(claims, verdicts, choices_of(rows, claims)) +
         beyond(claims, verdicts);
}

}  // namespace sb
