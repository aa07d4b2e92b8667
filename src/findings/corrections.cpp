// The reproduced numbers and those of the corrected protocol.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/choices.h"
#include "findings/comparison_cells.h"
#include "findings/page_claims.h"
#include "findings/page_text.h"
#include "findings/paper_gains.h"
#include "findings/protocol.h"

namespace sb {
namespace {

constexpr double moved_far = .03;  // by the corrected protocol
constexpr double costly = .01;     // of a fault

std::string text_of(const Gain& d) {
  return formatted("{} {} ({} against {})", model_title(d.model), signed_points(d.size()), share(d.to), share(d.from));
}

// The learning rate chosen for a model, by its title; empty if there is none.
std::string chosen_rate(const std::vector<Choice>& choices, const std::string& title) {
  for (const auto& choice : choices)
    if (choice.chosen && model_title(choice.model) == title) return choice.lr;
  return "";
}

// What precision alone changes for the models that moved, as far as runs that differ only in it tell.
struct PrecisionText {
  std::string alone, rest;          // sentences; empty without such runs
  std::vector<std::string> others;  // models without such runs
};

PrecisionText precision_text(const Rows& rows, const Claims& claims, const std::vector<Gain>& moved, int task) {
  PrecisionText out;
  std::vector<std::string> by_precision, rest;
  for (const auto& gain : moved) {
    const auto of = [&](const char* protocol) { return figures_of_model(rows, claims, protocol, gain.model, task); };
    const auto precision = gain_between(gain.model, of(published_protocol), of("published but no delta_bf16"));
    if (precision) {
      by_precision.push_back(formatted("{} points for {}", signed_points(precision->size()), model_title(gain.model)));
      rest.push_back(signed_points(gain.size() - precision->size()));
    } else {
      out.others.push_back(model_title(gain.model));
    }
  }
  if (by_precision.empty()) return out;
  out.alone = formatted("Changing only bfloat16 to mixed precision gives {}.", and_list(by_precision));
  out.rest =
      formatted("All other changes together give {}{}.", and_list(rest), rest.size() > 1 ? ", in the same order" : "");
  return out;
}

// Models trained at another rate than the chosen one: "GLA at 0.002 instead of 0.004 (the failed run was not kept)".
// Models that have the rate found on an earlier task, without a run at the chosen one, are named apart.
std::vector<std::string> rates_below_chosen(const ResultsTable& table, const std::vector<Choice>& choices, int task,
                                            std::map<std::string, int>& found_on) {
  std::vector<std::string> found, out;
  std::map<int, std::vector<std::string>> followers;  // by the task on which their rate was found
  for (const auto& row : table) {
    const auto at = row.cells.find({task, ResultColumn::corrected});
    const std::string rate = chosen_rate(choices, row.name);
    if (at == row.cells.end() || rate.empty()) continue;
    const ResultValue& value = at->second;
    if (value.lr.empty() || value.lr == rate || value.trained_rates.contains(rate)) continue;
    const bool kept = value.failed_rates.contains(rate);
    const auto [earlier, first] = found_on.emplace(row.name + " " + value.lr, task);
    if (first || kept) {
      found.push_back(formatted("{} at {} instead of {}{}", row.name, value.lr, rate,
                                kept ? "" : " (the failed run was not kept)"));
    } else {
      followers[earlier->second].push_back(row.name);
    }
  }
  if (!found.empty())
    out.push_back(
        formatted("Training failed at the chosen learning rate, so a lower one was found on the reported grammar: {}.",
                  and_list(found)));
  for (const auto& [earlier, models] : followers)
    out.push_back(formatted("{} {} the learning rate found on task {}, without a run at the chosen one.",
                            and_list(models), models.size() == 1 ? "has" : "have", earlier));
  return out;
}

// " The best of all is Transformer in such a run (.668), not Mamba2 (.649)." if the better runs of the footnotes change
// this by more than the order gap.
std::string new_best(const ResultsTable& table, int task) {
  const ResultRow *as_run = nullptr, *with_better = nullptr;
  double most = 0, most_with_better = 0;
  for (const auto& row : table) {
    const auto at = row.cells.find({task, ResultColumn::corrected});
    if (at == row.cells.end() || !at->second.accuracy || at->second.lr.empty()) continue;
    if (*at->second.accuracy > most) {
      most = *at->second.accuracy;
      as_run = &row;
    }
    if (const double best = at->second.better.value_or(*at->second.accuracy); best > most_with_better) {
      most_with_better = best;
      with_better = &row;
    }
  }
  if (as_run == with_better || most_with_better - most <= order_gap) return "";
  return formatted(" With them, the best model is {} ({}), not {} ({}).", with_better->name, share(most_with_better),
                   as_run->name, share(most));
}

// What a deviation costs (sign -1) or gains (1), where it is at least a point, grouped by task and scale.
std::string effects_of(const ClaimVerdict& verdict, int sign) {
  std::vector<std::string> places;
  std::map<std::string, std::vector<std::string>> by_place;
  for (const auto& stratum : verdict.scales)
    for (const auto& one : stratum.comparisons) {
      if (one.effect.n == 0 || one.failed() || sign * one.effect.mean < costly) continue;
      const std::string place =
          formatted("on task {} at {} ({} grammar{}{})", one.comparison->task, code(stratum.scale->name), one.effect.n,
                    one.effect.n == 1 ? "" : "s", one.interval ? "" : ", no interval");
      if (!by_place.contains(place)) places.push_back(place);
      by_place[place].push_back(formatted("{} points for {}", fixed(sign * one.effect.mean * 100, 1),
                                          model_title(one.comparison->a.front().model)));
    }
  for (auto& place : places) place = formatted("{} {}", and_list(by_place[place]), place);
  return places.empty() ? ""
                        : formatted("{}: {}{}", verdict.claim->title, joined(places, "; "),
                                    in_brackets(cell(verdict.claim->caveat)));
}

// The models on which a deviation was measured, and the scales.
struct Measured {
  std::set<std::string> models, scales;
};

Measured measured_on(const ClaimVerdict& verdict) {
  Measured out;
  for (const auto& stratum : verdict.scales)
    for (const auto& one : stratum.comparisons)
      if (one.effect.n > 0 && !one.failed()) {
        out.models.insert(one.comparison->a.front().model);
        out.scales.insert(stratum.scale->name);
      }
  return out;
}

// The faults that were measured to cost at least 1 point, and those that were not measured.
std::string costs(const std::vector<ClaimVerdict>& deviations) {
  std::vector<std::string> lost, gained, unmeasured;
  size_t measured = 0, one_model = 0, at_paper = 0;
  for (const auto& verdict : deviations) {
    if (!verdict.claim->in_code) continue;
    const Measured on = measured_on(verdict);
    if (on.models.empty())
      unmeasured.push_back(verdict.claim->title);
    else
      ++measured;
    one_model += on.models.size() == 1;
    at_paper += on.scales.contains("paper");
    if (auto text = effects_of(verdict, -1); !text.empty()) lost.push_back(std::move(text));
    if (auto text = effects_of(verdict, 1); !text.empty()) gained.push_back(std::move(text));
  }
  if (measured == 0) return "";
  std::string out =
      formatted("Of {} faults of the code, {} {} measured alone, {} of them with one model only and {} at `paper`. ",
                measured + unmeasured.size(), measured, measured == 1 ? "was" : "were", one_model, at_paper) +
      (lost.empty()
           ? "None costs a point."
           : formatted("{} at least a point in some runs. {}.",
                       lost.size() == 1 ? "One costs" : formatted("{} cost", lost.size()), joined(lost, ". ")));
  if (!gained.empty())
    out += formatted(" {} at least a point. {}.",
                     gained.size() == 1 ? "One gains" : formatted("{} gain", gained.size()), joined(gained, ". "));
  if (!unmeasured.empty()) out += formatted(" Not measured: {}.", joined(unmeasured, "; "));
  return out + " The [details](findings/details.md#deviations-from-the-published-protocol) list models and scales.";
}

// What the corrected protocol changes on one task.
struct TaskChange {
  std::string line;   // "Task 1: these models move by more than 3 points: …"; empty without runs of both protocols
  std::string brief;  // "on task 1, DeltaNet +8.2 and GLA −4.3"; empty if no model moves far
  std::string precision;
  bool unexplained = false;  // a model moves far, and no run tells why
};

TaskChange change_on(const Rows& rows, const Claims& claims, const ResultsTable& table, int task,
                     const std::vector<std::string>& notes, size_t& most_grammars) {
  TaskChange out;
  std::vector<Gain> moved;
  bool any = false;
  for (const auto& model : paper_models()) {
    const Figures published = figures_of_model(rows, claims, published_protocol, model, task);
    const Figures corrected = figures_of_model(rows, claims, corrected_protocol, model, task);
    const auto d = gain_between(model, published, corrected);
    any |= d.has_value();
    most_grammars = std::max({most_grammars, published.effects.size(), corrected.effects.size()});
    if (d && std::abs(d->size()) > moved_far) moved.push_back(*d);
  }
  if (!any) return out;
  std::stable_sort(moved.begin(), moved.end(),
                   [](const Gain& a, const Gain& b) { return std::abs(a.size()) > std::abs(b.size()); });
  const std::string far = fixed(moved_far * 100, 0);
  std::vector<std::string> parts, short_parts;
  for (const auto& d : moved) {
    parts.push_back(text_of(d));
    short_parts.push_back(formatted("{} {}", model_title(d.model), signed_points(d.size())));
  }
  if (parts.empty()) {
    out.line = formatted("Task {}: no model moves by more than {} points.", task, far);
  } else {
    const PrecisionText precision = precision_text(rows, claims, moved, task);
    out.line = formatted("Task {}: these models move by more than {} points: {}.", task, far, and_list(parts));
    out.brief = formatted("on task {}, {}", task, and_list(short_parts));
    if (!precision.alone.empty()) {
      out.line += formatted(" {} {}", precision.alone, precision.rest);
      out.precision = formatted("On task {}, c{}", task, precision.alone.substr(1));
    }
    out.unexplained = !precision.others.empty();
    if (out.unexplained)
      out.line += formatted(" The causes were not measured separately for {}.", and_list(precision.others));
  }
  std::vector<std::string> worse;
  for (const auto& row : table)
    if (const auto at = row.cells.find({task, ResultColumn::corrected}); at != row.cells.end() && at->second.better)
      worse.push_back(row.name);
  if (!worse.empty())
    out.line += formatted(
        " With other settings, which the footnotes give, {} better by more than {} point. Which setting makes the "
        "difference was not measured.{}",
        worse.size() == 1 ? worse.front() + " is" : and_list(worse) + " are", fixed(clearly_better * 100, 0),
        new_best(table, task));
  for (const auto& note : notes) out.line += " " + note;
  return out;
}

}  // namespace

PaperComparison corrections_text(const Rows& rows, const Claims& claims, const ResultsTable& table,
                                 const std::vector<ClaimVerdict>& deviations) {
  const std::vector<Choice> choices = choices_of(rows, claims);
  std::vector<std::string> lines, moved, precisions;
  size_t most_grammars = 0;
  bool unexplained = false;
  std::map<std::string, int> found_on;  // by model and learning rate: the task on which the rate was found
  for (int task = 1; task <= 3; ++task) {
    const auto notes = rates_below_chosen(table, choices, task, found_on);
    const TaskChange change = change_on(rows, claims, table, task, notes, most_grammars);
    if (!change.line.empty()) lines.push_back(change.line);
    if (!change.brief.empty()) moved.push_back(change.brief);
    if (!change.precision.empty()) precisions.push_back(change.precision);
    unexplained |= change.unexplained;
  }
  PaperComparison out;
  if (lines.empty()) {
    out.brief =
        "There are no models with runs of both protocols at the paper's scale yet, so this page cannot say what the "
        "corrections change there.\n";
    out.text = "No models with runs of both protocols yet.\n";
    return out;
  }
  if (const std::string line = costs(deviations); !line.empty()) lines.push_back(line);
  const std::string far = fixed(moved_far * 100, 0);
  out.brief = formatted(
      "**What do the corrections change?** {}{}{}\n",
      moved.empty() ? formatted("No model moves by more than {} points.", far)
                    : formatted("More than {} points: {}.", far, joined(moved, "; ")),
      precisions.empty() ? "" : " " + joined(precisions, " "),
      (unexplained ? std::string(" Learning rates and residuals change too; the causes of the other changes were not "
                                 "measured separately.")
                   : "") +
          (most_grammars == 1 ? " Each number compares two single runs; the spread between runs was not measured."
                              : ""));
  out.text = formatted(
                 "Besides the faults, the learning rate changes for most models and the residual for some. They were "
                 "chosen at `{}`, or lowered here because training failed, so others may be better at this scale. The "
                 "differences are the combined effect{}:\n\n",
                 claims.choice_scale, most_grammars == 1 ? ", of one run of each protocol" : "") +
             bullets(lines);
  return out;
}

}  // namespace sb
