#include "findings/page_claims.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/choices.h"
#include "findings/comparison_cells.h"
#include "findings/page_text.h"
#include "findings/protocol.h"

namespace sb {
namespace {

// The published protocol is meant for the paper's scale; elsewhere it is shown if there are runs.
bool is_shown(const ScaleVerdict& stratum) {
  return stratum.protocol == corrected_protocol || stratum.scale->name == "paper";
}

std::string paper_text(const ComparisonVerdict& one) {
  if (!one.paper) return "";
  return formatted("{} ± {}", signed_points(one.paper->effect), fixed(one.paper->spread * 100, 1));
}

// "+0.2 points", with the difference on each of two grammars: "+0.2 points (−0.4, +0.7)". Three have an interval.
std::string effect_on_each(const ComparisonVerdict& one) {
  const Comparison& c = *one.comparison;
  std::string out = formatted("{} {}", effect_text(c, one.effect.mean), unit_text(c));
  if (one.figures.effects.size() != 2) return out;
  const auto &first = *one.figures.effects.begin(), &second = *one.figures.effects.rbegin();
  return out + formatted(" ({}, {})", effect_text(c, first.second), effect_text(c, second.second));
}

// What the comparisons that change one mechanism of a model say; empty if all do, or none has runs. The others compare
// whole models, which differ in more than one mechanism.
std::string isolated_text(const ScaleVerdict& stratum) {
  size_t isolated = 0, others = 0;
  std::map<std::string, size_t> words;
  for (const auto& one : stratum.comparisons) {
    if (one.comparison->reported || !one.has_runs() || one.exact || one.comparison->b.empty() ||
        !one.comparison->kind.empty())
      continue;
    (one.isolates() ? isolated : others) += 1;
    if (one.isolates()) ++words[one.held ? to_string(one.verdict) : to_string(Verdict::undecided)];
  }
  if (isolated == 0 || others == 0) return "";
  std::vector<std::string> parts;
  for (const auto& [word, count] : words) parts.push_back(formatted("{} in {}", word, count));
  return formatted(
      "{}: {} of {} comparisons change{} one mechanism of one model ({}); the others compare models that differ in "
      "more than one.",
      where_text(stratum), isolated, isolated + others, isolated == 1 ? "s" : "", joined(parts, ", "));
}

std::string comparison_rows(const ScaleVerdict& stratum, std::vector<std::string>& units,
                            std::vector<std::string>& below) {
  std::string out;
  for (const auto& one : stratum.comparisons) {
    const Comparison& c = *one.comparison;
    if (!one.has_runs()) continue;
    const bool any = one.effect.n > 0;
    out += formatted("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", cell(c.name()), where_text(stratum, one),
                     first_figure(one), second_figure(one), any ? effect_text(c, one.effect.mean) : "–",
                     interval_text(one), c.reported ? "" : asks_text(c), paper_text(one), evidence_text(one),
                     verdict_cell(one));
    say(units, unit_text(c));
    add_notes(stratum, one, below);
  }
  if (const std::string line = ceilings_text(stratum); !line.empty()) say(below, cell(line));
  if (const std::string line = isolated_text(stratum); !line.empty()) say(below, line);
  for (const auto& line : lost_lines(lost_of(stratum))) say(below, cell(line) + ".");
  return out;
}

std::string published_table(const PublishedFigures& figures) {
  std::string out = formatted("\n{}\n\n| model | perplexity | accuracy, % |\n|---|---:|---:|\n", cell(figures.source));
  for (const auto& row : figures.rows)
    out += formatted("| {} | {} | {} |\n", model_title(row.model), fixed(row.perplexity, 2), fixed(row.accuracy, 1));
  return out;
}

// `judged`: names the chosen settings.
std::string choices_table(const std::vector<Choice>& choices, bool judged) {
  std::string out = "\n| model | residual | learning rate | accuracy on valid | |\n|---|---|---:|---:|---|\n";
  for (const auto& choice : choices)
    out += formatted("| {} | {} | {} | {} | {} |\n", model_title(choice.model), cell(choice.variant.text()),
                     cell(choice.lr), choice.valid ? fixed(*choice.valid, 4).substr(*choice.valid < 1) : "failed",
                     !judged         ? choice.chosen ? "best" : ""
                     : choice.open   ? "best so far"
                     : choice.chosen ? "chosen"
                                     : "");
  return out;
}

std::string deviation_row(const ClaimVerdict& verdict, const std::string& comparison, const std::string& where,
                          const std::string& effect, const std::string& interval, const std::string& evidence) {
  return formatted("| {} | {} | {} | {} | {} | {} |\n", cell(verdict.claim->title), cell(comparison), where, effect,
                   interval, evidence);
}

std::string claim_heading(const Claim& claim) {
  return (claim.number > 0 ? formatted("Claim {}: ", claim.number) : "") + claim.title;
}

// "7 of 7 models are best with other settings there, by 0.2 to 1.2 points."
std::string other_settings(const std::vector<Choice>& chosen, const std::vector<Choice>& checked) {
  size_t models = 0;
  std::vector<double> gains;
  for (const auto& choice : chosen) {
    if (!choice.chosen) continue;
    const Choice *best = nullptr, *same = nullptr;
    for (const auto& other : checked) {
      if (other.model != choice.model || !other.valid) continue;
      if (other.chosen) best = &other;
      if (other.variant == choice.variant && other.lr == choice.lr) same = &other;
    }
    if (best == nullptr || same == nullptr) continue;
    ++models;
    if (best != same) gains.push_back(*best->valid - *same->valid);
  }
  if (gains.empty()) return formatted("All {} models are best with the same settings there.", models);
  const auto [least, most] = std::minmax_element(gains.begin(), gains.end());
  return formatted("{} of {} models are best with other settings there, by {} to {} points.", gains.size(), models,
                   fixed(*least * 100, 1), fixed(*most * 100, 1));
}

}  // namespace

bool shows_quick(const Claim& claim) {
  return claim.number == 0 && !claim.section.empty();
}

std::vector<ScaleVerdict> page_strata(const Rows& rows, const Claims& claims, const Claim& claim) {
  std::vector<ScaleVerdict> out;
  for (const char* protocol : {corrected_protocol, published_protocol})
    for (const auto& scale : claims.scales) {
      if (scale.name != "quick" || (shows_quick(claim) && protocol == std::string(corrected_protocol)))
        out.push_back(judge(rows, claims, claim, scale, protocol));
    }
  return out;
}

std::string claim_link(const Claim& claim, const std::string& page) {
  const std::string number = claim.number > 0 ? std::to_string(claim.number) + ". " : "";
  return formatted("{}[{}]({}#{})", number, cell(claim.title), page, heading_anchor(claim_heading(claim)));
}

std::string claims_overview(const std::vector<ClaimVerdict>& verdicts, const std::string& page) {
  std::vector<size_t> columns;
  for (size_t s = 0; s < verdicts.front().scales.size(); ++s)
    if (is_shown(verdicts.front().scales[s]) &&
        std::any_of(verdicts.begin(), verdicts.end(), [s](const auto& v) { return v.scales[s].with_runs > 0; }))
      columns.push_back(s);
  std::string head = "| claim |", rule = "|---|";
  for (const size_t s : columns) {
    head += " " + where_text(verdicts.front().scales[s]) + " |";
    rule += "---|";
  }
  std::string out = head + "\n" + rule + "\n";
  for (const auto& verdict : verdicts) {
    out += formatted("| {} |", claim_link(*verdict.claim, page));
    for (const size_t s : columns)
      out += formatted(" {}{} |", verdict.scales[s].words(),
                       verdict.scales[s].with_runs > 0 ? in_brackets(verdict.scales[s].marks()) : "");
    out += "\n";
  }
  return out;
}

std::string decided_table(const std::vector<ClaimVerdict>& verdicts) {
  std::string rows;
  std::vector<std::string> isolated;
  bool exploratory = false, untuned = false, failing = false;
  const bool numbered =
      std::any_of(verdicts.begin(), verdicts.end(), [](const auto& v) { return v.claim->number > 0; });
  for (const auto& verdict : verdicts)
    for (const auto& stratum : verdict.scales) {
      bool any = false;
      for (const auto& one : stratum.comparisons) {
        const Comparison& c = *one.comparison;
        if (!one.is_decided() && !one.would_decide()) continue;
        any = true;
        if (numbered) rows += formatted("| {} ", verdict.claim->number);
        const std::string where = where_text(stratum, one);
        rows +=
            formatted("| {} | {} | {} {} | {} | {} | {} |\n", cell(c.name()),
                      numbered ? where : where + ", " + evidence_text(one), effect_text(c, one.effect.mean),
                      unit_text(c), interval_text(one), asks_text(c), verdict_cell(one) + in_brackets(stratum.marks()));
        exploratory |= stratum.exploratory;
        untuned |= stratum.untuned;
        failing |= !one.failing.empty();
      }
      if (const std::string line = isolated_text(stratum); any && numbered && !line.empty())
        isolated.push_back(formatted("Claim {}, {}", verdict.claim->number, line));
    }
  if (rows.empty()) return "";
  std::string out =
      numbered ? "| claim | comparison | runs | a − b | 95 % interval | asked | verdict "
                 "|\n|---:|---|---|---:|---:|---:|---|\n"
               : "| comparison | runs | a − b | 95 % interval | asked | verdict |\n|---|---|---:|---:|---:|---|\n";
  out += rows;
  if (!isolated.empty()) out += "\n" + bullets(isolated);
  if (failing)
    out +=
        "\n*Not trained* beside a verdict: a model failed its own test, which has the distribution of its training. "
        "The verdict counts because the claim expects a low accuracy of this model.\n";
  return out + marks_text(exploratory, untuned);
}

std::string measured_table(const std::vector<ClaimVerdict>& verdicts) {
  std::string rows;
  std::vector<std::string> below, ceilings;
  bool exploratory = false, untuned = false, isolated = false;
  for (const auto& verdict : verdicts)
    for (const auto& stratum : verdict.scales) {
      bool any = false;
      for (const auto& one : stratum.comparisons) {
        const Comparison& c = *one.comparison;
        if (one.effect.n == 0 || stratum.scale->name == "quick") continue;
        const auto weak = below_n_gram(one);
        for (const auto& line : weak) say(below, formatted("{}: {}.", where_text(stratum, one), line));
        any = true;
        isolated |= one.isolates();
        rows += formatted("| {} | {}, {} | {} | {} | {} | {} | {}{} |\n", cell(c.name()), where_text(stratum, one),
                          evidence_text(one), first_figure(one), second_figure(one), effect_on_each(one),
                          interval_text(one), verdict_cell(one) + in_brackets(stratum.marks()),
                          weak.empty() ? "" : "; below the n-gram");
        exploratory |= stratum.exploratory;
        untuned |= stratum.untuned;
      }
      if (const std::string line = any ? ceilings_text(stratum) : ""; !line.empty()) say(ceilings, cell(line));
    }
  if (rows.empty()) return "";
  return "| comparison | runs | a | b | a − b | 95 % interval | verdict |\n"
         "|---|---|---:|---:|---:|---:|---|\n" +
         rows + "\n" + bullets(ceilings) + bullets(below) +
         (isolated ? "" : "- No comparison changes one mechanism alone.\n") + marks_text(exploratory, untuned);
}

std::string marks_text(bool exploratory, bool untuned) {
  std::string out;
  if (exploratory)
    out +=
        "\n*Exploratory*: the training or a network was changed after first runs of the same comparison, so the "
        "verdict needs new runs to confirm it.\n";
  if (untuned)
    out +=
        "\n*Untuned*: the learning rate of a model was not chosen by accuracy on valid, on this kind of task at this "
        "scale or, for larger scales, at `small`; this favours models for which it was. At another rate, or after "
        "longer training, differences can change by 10 points and more. A difference of accuracies is decided only "
        "if 20 points would not change the verdict.\n";
  return out;
}

std::string claim_section(const ClaimVerdict& verdict, const Claims& claims) {
  const Claim& claim = *verdict.claim;
  std::string out = formatted("\n### {}\n\n", cell(claim_heading(claim)));
  std::string rows;
  std::vector<std::string> words, units, below;
  bool unusable = false;
  for (const auto& stratum : verdict.scales) {
    if (stratum.with_runs > 0)
      words.push_back(formatted("{} ({}{}{})", stratum.words(), stratum.marks(), stratum.marks().empty() ? "" : ", ",
                                where_text(stratum)));
    rows += comparison_rows(stratum, units, below);
    unusable |= stratum.has_only_unusable_runs();
  }
  if (words.empty()) words.push_back(unusable ? "no usable runs yet" : "no runs yet");
  out += formatted("**{}.** {}\n\nId: {}.\n", capitalised(joined(words, "; ")), cell(claim.sentence), code(claim.id));
  if (!rows.empty()) {
    out +=
        "\n| comparison | runs | a | b | a − b | 95 % interval | asked | paper's a − b | evidence | verdict |\n"
        "|---|---|---:|---:|---:|---:|---:|---:|---|---|\n" +
        rows + formatted("\nDifferences in {}.\n", joined(units, "; "));
    for (const auto& line : below) out += line + "\n";
  }
  std::set<std::string> cited;
  for (const auto& comparison : claim.comparisons)
    if (!comparison.published.empty() && cited.insert(comparison.published).second)
      out += published_table(*claims.published_figures(comparison.published));
  if (!claim.paper.empty()) out += "\n" + cell(claim.paper) + "\n";
  if (!claim.untested.empty()) out += "\nNot tested: " + cell(claim.untested) + "\n";
  return out;
}

std::string deviations_section(const std::vector<ClaimVerdict>& deviations) {
  std::string out =
      "\n## Deviations from the published protocol\n\n"
      "The published code differs from the paper's text, or from good practice, in the following points. The effect is "
      "the accuracy with the deviation minus the accuracy without it, between runs that differ in nothing else. *Seen "
      "gain* is the accuracy on the first training samples minus the accuracy on test, of the same run.\n\n"
      "| deviation | comparison | runs | effect, points | 95 % interval | evidence |\n|---|---|---|---:|---:|---|\n";
  for (const auto& verdict : deviations) {
    std::string rows;
    for (const auto& stratum : verdict.scales) {
      std::vector<const ComparisonVerdict*> seen;  // one row for all models
      for (const auto& one : stratum.comparisons) {
        if (one.comparison->statistic == Statistic::seen_gain && one.effect.n > 0)
          seen.push_back(&one);
        else if (one.has_runs())
          rows +=
              deviation_row(verdict, one.comparison->name(), where_text(stratum, one),
                            one.effect.n > 0 ? effect_text(*one.comparison, one.effect.mean) : "–", interval_text(one),
                            evidence_text(one) + (one.figures.at_ceiling ? ", at the ceiling" : ""));
      }
      if (seen.empty()) continue;
      const auto by_effect = [](const auto* a, const auto* b) { return a->effect.mean < b->effect.mean; };
      const auto [least, most] = std::minmax_element(seen.begin(), seen.end(), by_effect);
      rows +=
          deviation_row(verdict, formatted("task {}, seen gain of {} models", seen[0]->comparison->task, seen.size()),
                        where_text(stratum),
                        effect_text(*seen[0]->comparison, (*least)->effect.mean) + " to " +
                            effect_text(*seen[0]->comparison, (*most)->effect.mean),
                        "–", evidence_text(*seen[0]));
    }
    out += rows.empty() ? formatted("| {} | | | – | – | {} |\n", cell(verdict.claim->title),
                                    verdict.claim->comparisons.empty() ? "not measured" : "no runs yet")
                        : rows;
  }
  out += "\n";
  for (const auto& verdict : deviations)
    out += formatted("- {}: {}\n", cell(verdict.claim->title), cell(verdict.claim->sentence));
  return out;
}

std::string choices_section(const Rows& rows, const Claims& claims) {
  std::string out = "\n## What was chosen\n\n";
  if (!claims.choice_seed) return out + "Nothing: every run has the settings of its config.\n";
  out += formatted(
      "Learning rate, residual and convolution of the corrected protocol are chosen on task 1 of grammar seed {}, "
      "scale {}, by accuracy on valid. No comparison on this page uses this grammar. A model listed with one residual "
      "was tried only with that one. Differences of .0005 are within two standard errors, so the chosen settings are "
      "good, not necessarily optimal. A scale may override a choice that fails there; its file in `configs/scales` "
      "says why.\n",
      *claims.choice_seed, code(claims.choice_scale));
  const auto choices = choices_of(rows, claims);
  if (choices.empty()) return out + "\nNo runs yet.\n";
  out += choices_table(choices, /*judged=*/true);
  const auto count = [&](bool Choice::*is) { return std::count_if(choices.begin(), choices.end(), std::mem_fn(is)); };
  if (const auto edge = count(&Choice::at_edge); edge > 0)
    out += formatted(
        "\n{} of {} models are best at the largest or the smallest rate tried, so better rates may lie outside the "
        "tried range.\n",
        edge, count(&Choice::chosen));
  if (count(&Choice::open) > 0)
    out += "\n*Best so far*: another residual or convolution of this model was not yet tried at this rate.\n";
  if (const auto checked = choices_of(rows, claims, 3); !checked.empty())
    out += formatted(
        "\nThe same grammar on task 3: {} Nothing was chosen from these runs; verdicts "
        "on accuracies that such gains might change are withheld.\n{}",
        other_settings(choices, checked), choices_table(checked, /*judged=*/false));
  return out;
}

std::string undecided_section(const std::vector<ClaimVerdict>& verdicts, const std::vector<std::string>& missing) {
  std::string out = "\n## What is missing\n";
  if (!missing.empty()) out += "\nQuestions that no comparison asks yet:\n\n";
  for (const auto& text : missing) out += "- " + cell(text) + "\n";
  std::vector<std::string> nowhere;  // claims without any runs
  for (const auto& verdict : verdicts) {
    std::string lines;
    std::vector<std::string> without;
    bool has_runs = false;
    for (const auto& stratum : verdict.scales) {
      if (!is_shown(stratum) && !stratum.tested) continue;
      std::vector<std::string> unrun;
      ScaleVerdict begun = stratum;
      std::erase_if(begun.comparisons, [&](const ComparisonVerdict& one) {
        if (!one.has_runs()) say(unrun, cell(one.comparison->name()));
        return !one.has_runs() || one.comparison->reported;
      });
      for (const auto& line : decides_of(begun)) lines += formatted("- {}: {}\n", where_text(stratum), cell(line));
      if (begun.comparisons.empty() && stratum.with_runs == 0) {
        without.push_back(where_text(stratum));
        continue;
      }
      has_runs = true;
      if (!unrun.empty()) lines += formatted("- {}: no runs of {}\n", where_text(stratum), joined(unrun, "; "));
    }
    if (!without.empty() && has_runs) lines += formatted("- no runs: {}\n", joined(without, "; "));
    if (!lines.empty())
      out += formatted("\n{}:\n\n{}", cell(verdict.claim->title), lines);
    else if (!without.empty())
      nowhere.push_back("- " + cell(verdict.claim->title) + "\n");
  }
  return nowhere.empty() ? out : out + "\nNo runs of any protocol and scale:\n\n" + joined(nowhere, "");
}

}  // namespace sb
