// The prose at the top of docs/findings.md: templates filled in from figures and verdicts.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/arms.h"
#include "findings/choices.h"
#include "findings/page_claims.h"
#include "findings/page_text.h"
#include "findings/protocol.h"

namespace sb {
namespace {

constexpr double near_paper = .03;  // a figure this close to the paper's is called reproduced

struct Gain {
  std::string model;
  double from = 0, to = 0;
  double size() const { return to - from; }
};

std::string text_of(const Gain& d) {
  return formatted("{} {} ({} against {})", model_title(d.model), signed_points(d.size()), share(d.to), share(d.from));
}

std::string and_list(const std::vector<std::string>& parts) {
  if (parts.size() < 2) return joined(parts, "");
  return joined(std::vector<std::string>(parts.begin(), parts.end() - 1), ", ") + " and " + parts.back();
}

// The accuracies of one model on one task at the paper's scale.
Figures figures_of_model(const Rows& rows, const Claims& claims, const char* protocol, const std::string& model,
                         int task) {
  const Scale* scale = claims.scale("paper");
  if (scale == nullptr) return {};
  Comparison alone;
  alone.a = {ArmModel{model, {}, {}}};
  alone.task = task;
  return figures_of(rows, claims, *scale, protocol, alone);
}

double mean_of(const Figures& figures) {
  std::vector<double> accuracies;  // by grammar
  for (const auto& [unit, value] : figures.effects) accuracies.push_back(value);
  return estimate(accuracies).mean;
}

// "On task 1, 5 of 7 models are within 3 points of the paper, 2 of them below it. Further away are …"
std::string reproduction(const Rows& rows, const Claims& claims) {
  std::string out;
  size_t grammars = 0;
  std::vector<std::string> unrun;
  for (int task = 1; task <= 3; ++task) {
    std::vector<std::string> far, failed, weak;
    size_t near = 0, inside = 0;  // inside: within the paper's own ±
    double lowest = 1, highest = -1;
    bool paper_too = true;  // the paper's numbers of `weak` models are below the n-gram too
    for (const auto& model : paper_models()) {
      const Figures figures = figures_of_model(rows, claims, published_protocol, model, task);
      if (!figures.a.failed.empty()) failed.push_back(model_title(model));
      if (figures.effects.empty()) continue;
      grammars = std::max(grammars, figures.effects.size());
      const Gain d{model, paper_table(model, task)->accuracy, mean_of(figures)};
      inside += std::abs(d.size()) <= paper_table(model, task)->spread;
      lowest = std::min(lowest, d.size());
      highest = std::max(highest, d.size());
      near += std::abs(d.size()) <= near_paper;
      if (std::abs(d.size()) > near_paper) far.push_back(text_of(d));
      if (const auto below = n_gram_above({ArmModel{model, {}, {}}}, figures.a, figures.effects)) {
        weak.push_back(
            formatted("{} ({} against {})", model_title(model), share(below->accuracy), share(below->n_gram)));
        paper_too &= d.from < below->n_gram;
      }
    }
    const size_t all = near + far.size();
    if (all > 0) {
      out += formatted(
          " On task {}, {} models differ from the paper by {} to {} points, {} of them by at most {}; {} within "
          "the paper's own ±.",
          task, all, signed_points(lowest), signed_points(highest), near, fixed(near_paper * 100, 0),
          inside == 0   ? "none is"
          : inside == 1 ? "1 is"
                        : formatted("{} are", inside));
      if (!far.empty()) out += formatted(" Furthest away: {}; the reason is not known.", and_list(far));
      if (!weak.empty())
        out += formatted(" Below the n-gram{}: {}.", paper_too ? ", as in the paper" : "", and_list(weak));
    } else if (failed.empty()) {
      unrun.push_back(std::to_string(task));
    }
    if (!failed.empty()) out += formatted(" On task {}, runs failed: {}.", task, and_list(failed));
  }
  if (out.empty()) return "There are no runs of the published protocol at the paper's scale yet.";
  if (grammars == 1)
    out +=
        " Each of these numbers comes from one run with one setting on grammar 1, so it has no interval; the paper's "
        "are the best of six settings, chosen on its test set, over seeds 1 to 4.";
  if (!unrun.empty())
    out += formatted(" Task{} {} {} no runs at this scale yet.", unrun.size() == 1 ? "" : "s", and_list(unrun),
                     unrun.size() == 1 ? "has" : "have");
  return "**Reproduction.** These runs train as published, at the paper's scale. The delta family trains in bfloat16, "
         "as published; the other models train in mixed precision, where the published code uses float32." +
         out;
}

// The learning rate chosen for a model, by its title; empty if there is none.
std::string chosen_rate(const std::vector<Choice>& choices, const std::string& title) {
  for (const auto& choice : choices)
    if (choice.chosen && model_title(choice.model) == title) return choice.lr;
  return "";
}

std::string caveat(const std::vector<Choice>& choices) {
  size_t chosen = 0, edges = 0;
  for (const auto& choice : choices) {
    chosen += choice.chosen;
    edges += choice.at_edge;
  }
  if (edges == 0) return "";
  return formatted(
      " Settings were chosen on task 1, and {} of {} models were best at the largest or smallest learning rate tried; "
      "verdicts on accuracies that better settings, as tried on task 3, might change are withheld.",
      edges, chosen);
}

// Why these models moved, as far as runs that differ from the published ones only in precision tell.
std::string reasons(const Rows& rows, const Claims& claims, const std::vector<Gain>& moved, int task) {
  std::vector<std::string> by_precision, figures, others;
  for (const auto& gain : moved) {
    const Figures precise = figures_of_model(rows, claims, "published but no delta_bf16", gain.model, task);
    if (!precise.effects.empty() && (mean_of(precise) - gain.from) / gain.size() > .5) {
      by_precision.push_back(model_title(gain.model));
      figures.push_back(share(mean_of(precise)));
    } else {
      others.push_back(model_title(gain.model));
    }
  }
  std::string out;
  if (!by_precision.empty())
    out += formatted(
        " For {}, precision alone gives at least half of this: trained as published, but in mixed precision instead of "
        "bfloat16, {} {} (one run each).",
        and_list(by_precision), by_precision.size() == 1 ? "it reaches" : "they reach", and_list(figures));
  if (!others.empty())
    out += formatted(
        " For {}, dropout, learning rate and in part the residual changed together, and what each of them does was "
        "not measured.",
        and_list(others));
  return out;
}

// Models that the corrected protocol moves by more than `near_paper`.
std::string corrections(const Rows& rows, const Claims& claims, const ResultsTable& table,
                        const std::vector<Choice>& choices) {
  std::string out;
  for (int task = 1; task <= 3; ++task) {
    std::vector<Gain> moved;
    bool any = false;
    for (const auto& model : paper_models()) {
      const Figures published = figures_of_model(rows, claims, published_protocol, model, task);
      const Figures corrected = figures_of_model(rows, claims, corrected_protocol, model, task);
      if (published.effects.empty() || corrected.effects.empty()) continue;
      any = true;
      const Gain d{model, mean_of(published), mean_of(corrected)};
      if (std::abs(d.size()) > near_paper) moved.push_back(d);
    }
    if (!any) continue;
    std::stable_sort(moved.begin(), moved.end(),
                     [](const Gain& a, const Gain& b) { return std::abs(a.size()) > std::abs(b.size()); });
    std::vector<std::string> parts;
    for (const auto& d : moved) parts.push_back(text_of(d));
    out += parts.empty()
               ? formatted(" On task {}, no model moves by more than {} points.", task, fixed(near_paper * 100, 0))
               : formatted(" On task {}, these move by more than {} points: {}.", task, fixed(near_paper * 100, 0),
                           and_list(parts)) +
                     reasons(rows, claims, moved, task);
    std::vector<std::string> worse;
    for (const auto& row : table)
      if (const auto at = row.cells.find({task, ResultColumn::corrected}); at != row.cells.end() && at->second.not_best)
        worse.push_back(row.name);
    for (const auto& row : table)
      if (const auto at = row.cells.find({task, ResultColumn::corrected}); at != row.cells.end())
        if (const std::string rate = chosen_rate(choices, row.name);
            !rate.empty() && !at->second.lr.empty() && at->second.lr != rate)
          out += formatted(
              " {} was trained at learning rate {}, found on the reported grammar, because training failed at the "
              "chosen {}{}.",
              row.name, at->second.lr, rate, at->second.failed_rates.contains(rate) ? "" : " (that run was not kept)");
    if (!worse.empty())
      out += formatted(
          " {} {} more with other settings that were run here, so {} not show what {} can reach: the chosen learning "
          "rate was chosen for smaller networks.",
          and_list(worse), worse.size() == 1 ? "reaches" : "reach",
          worse.size() == 1 ? "this number does" : "these numbers do", worse.size() == 1 ? "the model" : "the models");
  }
  if (out.empty())
    return "There are no models with runs of both protocols at the paper's scale yet, so this page cannot say what the "
           "corrections change there.";
  return "**Corrected.** These runs differ from the published ones not only in the faults, but also in the "
         "learning rate (chosen at `small`) and, for some models, in the residual (see the lines below the table). The "
         "differences below are the combined effect." +
         out;
}

// The deviations with the largest measured costs.
std::string costs(const std::vector<ClaimVerdict>& deviations) {
  struct Cost {
    double effect;
    std::string title, model, place;
  };
  std::vector<Cost> found;
  for (const auto& verdict : deviations)
    for (const auto& stratum : verdict.scales)
      for (const auto& one : stratum.comparisons)
        if (one.effect.n > 0 && !one.failed() && verdict.claim->in_code)
          found.push_back({one.effect.mean, verdict.claim->title, model_title(one.comparison->a.front().model),
                           formatted("on task {} at {} ({} grammar{})", one.comparison->task, code(stratum.scale->name),
                                     one.effect.n, one.effect.n == 1 ? "" : "s")});
  std::erase_if(found, [](const Cost& cost) { return cost.effect > -near_paper / 3; });
  if (found.empty()) return "";
  std::stable_sort(found.begin(), found.end(), [](const Cost& a, const Cost& b) { return a.effect < b.effect; });
  found.resize(std::min<size_t>(3, found.size()));
  std::vector<std::string> parts;
  while (!found.empty()) {  // one part for all models with the same deviation and place
    const Cost first = found.front();
    const auto together = [&first](const Cost& c) { return c.title == first.title && c.place == first.place; };
    std::vector<std::string> models;
    for (const Cost& cost : found)
      if (together(cost)) models.push_back(formatted("{} points for {}", fixed(-cost.effect * 100, 1), cost.model));
    std::erase_if(found, together);
    parts.push_back(formatted("{}, {} {}", first.title, and_list(models), first.place));
  }
  return " Of the faults of the published code that were measured one at a time, the costliest: " +
         joined(parts, "; ") + ".";
}

// " (in 1 of 3)" if the verdict is about some of the parts; " (one grammar)" if none could be decided.
std::string share_text(const ScaleVerdict& stratum) {
  if (stratum.has_one_grammar()) return " (one grammar)";
  const std::string words = stratum.words();
  const size_t at = words.find(" in ");
  return stratum.verdict == Verdict::undecided || at == std::string::npos ? ""
                                                                          : formatted(" ({})", words.substr(at + 1));
}

// "At `small`, corrected protocol: supported: …; contradicted: …. 4 other claims have no runs there yet."
std::string conclusions(const Claims& claims, const std::vector<ClaimVerdict>& verdicts,
                        const std::vector<Choice>& choices) {
  static constexpr const char* words[] = {"supported", "contradicted", "in part without the claimed effect",
                                          "undecided"};
  std::string out;
  std::vector<std::string> counted, single;  // claims that need no training; places with one grammar
  for (size_t s = 0; s < verdicts.front().scales.size(); ++s) {
    std::vector<std::string> titles[4];
    size_t untested = 0;
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
        ++untested;
      else
        titles[static_cast<size_t>(stratum.verdict)].push_back(
            formatted("“{}”{}", cell(verdict.claim->title), share_text(stratum)));
    }
    std::vector<std::string> parts;
    for (const Verdict verdict : {Verdict::supported, Verdict::contradicted, Verdict::equivalent, Verdict::undecided}) {
      const auto& all = titles[static_cast<size_t>(verdict)];
      if (!all.empty()) parts.push_back(formatted("{}: {}", words[static_cast<size_t>(verdict)], and_list(all)));
    }
    if (parts.empty()) continue;
    const ScaleVerdict& first = verdicts.front().scales[s];
    if (!more) {
      single.push_back(formatted("{} ({})", code(first.scale->name), first.protocol));
      continue;
    }
    out += formatted("{}At {}, {} protocol: {}.", out.empty() ? "" : " ", code(first.scale->name), first.protocol,
                     joined(parts, "; "));
    if (untested > 0)
      out += formatted(" {} other claim{} no runs there yet.", untested, untested == 1 ? " has" : "s have");
  }
  if (!single.empty()) out += formatted("{}One grammar decides nothing: {}.", out.empty() ? "" : " ", and_list(single));
  if (!counted.empty()) out += formatted("{}Counted, not trained: {}.", out.empty() ? "" : " ", and_list(counted));
  if (out.empty()) return "No claim of the paper has runs of either protocol yet.";
  std::vector<std::string> scales;
  for (const auto& scale : claims.scales)
    if (scale.name != "quick") scales.push_back(formatted("{} has {}", code(scale.name), scale.title));
  return formatted("**The claims.** {}. {}{}", capitalised(joined(scales, "; ")), out, caveat(choices));
}

}  // namespace

std::string summary_text(const Rows& rows, const Claims& claims, const std::vector<ClaimVerdict>& verdicts,
                         const std::vector<ClaimVerdict>& deviations, const ResultsTable& table) {
  const std::vector<Choice> choices = choices_of(rows, claims);
  return "The paper, *Dissecting Linear Recurrent Models* ([arXiv:2601.12598](https://arxiv.org/abs/2601.12598)), "
         "compares seven sequence models on four tasks and draws conclusions about gates, forgetting, channel mixing "
         "and attention. This page compares its results with runs of two protocols. *Published* runs train as the "
         "published code does, with four of its faults: dropout that stops, first learning rate 0, the Transformer's "
         "double residual, and bfloat16 in the delta family. They use this program's kernels, and gap decisions that "
         "do "
         "not repeat. *Corrected* runs train without dropout and without these "
         "faults, with settings chosen on another grammar (see [what was chosen](#what-was-chosen)), or with a lower "
         "learning rate where training failed with these. All runs are tested on unseen samples.\n\n" +
         reproduction(rows, claims) + "\n\n" + corrections(rows, claims, table, choices) + costs(deviations) + "\n\n" +
         conclusions(claims, verdicts, choices) + "\n";
}

}  // namespace sb
