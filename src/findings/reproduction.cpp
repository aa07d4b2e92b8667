// The parts of the summary that compare the paper's numbers, the reproduced and the corrected ones.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

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

constexpr double far_from_paper = .03;  // a figure further away is named as one without a known cause
constexpr double moved_far = .03;       // by the corrected protocol
constexpr double costly = .01;          // of a fault
constexpr double order_gap = .01;       // models whose accuracies differ by less have no order

struct Gain {
  std::string model;
  double from = 0, to = 0;
  double size() const { return to - from; }
};

std::string text_of(const Gain& d) {
  return formatted("{} {} ({} against {})", model_title(d.model), signed_points(d.size()), share(d.to), share(d.from));
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

// From one to the other, over the grammars that both have.
std::optional<Gain> gain_between(const std::string& model, const Figures& from, const Figures& to) {
  std::vector<double> before, after;
  for (const auto& [unit, value] : from.effects)
    if (const auto at = to.effects.find(unit); at != to.effects.end()) {
      before.push_back(value);
      after.push_back(at->second);
    }
  if (before.empty()) return std::nullopt;
  return Gain{model, estimate(before).mean, estimate(after).mean};
}

// "6 are below the paper, by 0.9 (Gated DeltaProduct) to 3.0 points (Mamba)" for the models on this side of the paper's
// number.
std::string side_text(const std::vector<Gain>& all, bool above) {
  std::vector<Gain> side;
  for (const auto& d : all)
    if (d.size() != 0 && (d.size() > 0) == above) side.push_back(d);
  if (side.empty()) return "";
  std::stable_sort(side.begin(), side.end(),
                   [](const Gain& a, const Gain& b) { return std::abs(a.size()) < std::abs(b.size()); });
  const char* where = above ? "above" : "below";
  const auto points = [](const Gain& d) { return fixed(std::abs(d.size()) * 100, 1); };
  if (side.size() == 1)
    return formatted("{} is {} points {} the paper", model_title(side[0].model), points(side[0]), where);
  return formatted("{} are {} the paper, by {} ({}) to {} points ({})", side.size(), where, points(side.front()),
                   model_title(side.front().model), points(side.back()), model_title(side.back().model));
}

// "No two models that differ by more than 1 point have the opposite order in the paper. These differ by more than 1
// point in the paper, but not here: Mamba and Gated DeltaProduct." Below 1 point, models have no order. Clears `same`
// if two models have another order.
std::string order_text(const std::vector<Gain>& all, bool& same) {
  constexpr size_t most_named = 3;
  std::vector<std::string> changed, closer;
  for (const auto& x : all)
    for (const auto& y : all) {
      if (x.to > y.to + order_gap && x.from < y.from)
        changed.push_back(formatted("{} is above {}", model_title(x.model), model_title(y.model)));
      if (x.from > y.from + order_gap && x.to <= y.to + order_gap && x.to >= y.to - order_gap)
        closer.push_back(formatted("{} and {}", model_title(x.model), model_title(y.model)));
    }
  const std::string gap = fixed(order_gap * 100, 0);
  same &= changed.empty();
  std::string out =
      changed.empty()
          ? formatted("No two models that differ by more than {} point have the opposite order in the paper.", gap)
      : changed.size() <= most_named
          ? formatted("Of models that differ by more than {} point, these have another order than in the paper: {}.",
                      gap, joined(changed, "; "))
          : formatted("{} of {} pairs of models differ by more than {} point in another order than the paper's.",
                      changed.size(), all.size() * (all.size() - 1) / 2, gap);
  if (closer.empty()) return out;
  return out + (closer.size() <= most_named
                    ? formatted(" These differ by more than {} point in the paper, but not here: {}.", gap,
                                joined(closer, "; "))
                    : formatted(" {} other pairs differ by more than {} point in the paper, but not here.",
                                closer.size(), gap));
}

// "Mamba has a lower learning rate, because training collapsed at 0.001." for models whose run in the table has a lower
// rate than a failed one.
std::vector<std::string> rates_after_collapse(const ResultsTable& table, int task) {
  std::vector<std::string> out;
  for (const auto& row : table)
    if (const auto at = row.cells.find({task, ResultColumn::reproduced});
        at != row.cells.end() && at->second.accuracy) {
      std::vector<std::string> higher;
      for (const auto& rate : at->second.failed_rates)
        if (parse_finite(rate) > parse_finite(at->second.lr)) higher.push_back(rate);
      if (!higher.empty())
        out.push_back(
            formatted("{} has a lower learning rate, because training collapsed at {}.", row.name, and_list(higher)));
    }
  return out;
}

// Over all tasks: figures compared with the paper's, those within its ±, and grammars.
struct Reproduced {
  size_t figures = 0, inside = 0, grammars = 0;
  bool same_order = true;
};

// "Task 1: none of 7 models is within the paper's own ±. …", and the task's note; both empty without runs.
std::pair<std::string, std::string> reproduction_of(const Rows& rows, const Claims& claims, const ResultsTable& table,
                                                    int task, Reproduced& sums) {
  std::vector<Gain> all;  // from the paper's number to ours
  std::vector<std::string> inside, far, failed, weak;
  bool paper_too = true;  // the paper's numbers of `weak` models are below the n-gram too
  size_t grammars = 0;
  for (const auto& model : paper_models()) {
    const Figures figures = figures_of_model(rows, claims, published_protocol, model, task);
    if (!figures.a.failed.empty()) failed.push_back(model_title(model));
    if (figures.effects.empty()) continue;
    grammars = std::max(grammars, figures.effects.size());
    const auto paper = paper_table(model, task);
    const Gain d{model, paper->accuracy, mean_of(figures)};
    all.push_back(d);
    if (std::abs(d.size()) <= paper->spread) {
      inside.push_back(formatted("{} ({} points off, ± {})", model_title(model), fixed(std::abs(d.size()) * 100, 1),
                                 fixed(paper->spread * 100, 1)));
    } else if (std::abs(d.size()) > far_from_paper) {
      far.push_back(model_title(model));
    }
    if (const auto below = n_gram_above({ArmModel{model, {}, {}}}, figures.a, figures.effects)) {
      weak.push_back(formatted("{} ({} against {})", model_title(model), share(below->accuracy), share(below->n_gram)));
      paper_too &= d.from < below->n_gram;
    }
  }
  sums.grammars = std::max(sums.grammars, grammars);
  sums.figures += all.size();
  sums.inside += inside.size();
  if (all.empty() && failed.empty()) return {};
  std::vector<std::string> parts, notes;
  if (!all.empty()) {
    const std::string of = formatted("of {} model{}", all.size(), all.size() > 1 ? "s" : "");
    parts.push_back(inside.empty() ? formatted("none {} is within the paper's own ±.", of)
                                   : formatted("{} {} {} within the paper's own ±: {}.", inside.size(), of,
                                               inside.size() == 1 ? "is" : "are", and_list(inside)));
    std::vector<std::string> sides;
    for (const bool above : {false, true})
      if (const std::string side = side_text(all, above); !side.empty()) sides.push_back(side);
    if (!sides.empty()) parts.push_back(joined(sides, "; ") + ".");
    if (all.size() > 1) parts.push_back(order_text(all, sums.same_order));
    if (!far.empty())
      notes.push_back(
          formatted("Why {} differ{} from the paper by more than {} points, and by more than its ±, was not measured.",
                    and_list(far), far.size() == 1 ? "s" : "", fixed(far_from_paper * 100, 0)));
  }
  for (const auto& line : rates_after_collapse(table, task)) notes.push_back(line);
  if (!weak.empty())
    notes.push_back(formatted("Below the n-gram of the same grammar{}{}: {}.", grammars == 1 ? "" : "s",
                              paper_too ? ", as are the paper's numbers" : "", and_list(weak)));
  if (!failed.empty()) parts.push_back(formatted("Failed runs: {}.", and_list(failed)));
  return {formatted("Task {}: {}", task, joined(parts, " ")),
          notes.empty() ? "" : formatted("Task {}, reproduced: {}", task, joined(notes, " "))};
}

// The learning rate chosen for a model, by its title; empty if there is none.
std::string chosen_rate(const std::vector<Choice>& choices, const std::string& title) {
  for (const auto& choice : choices)
    if (choice.chosen && model_title(choice.model) == title) return choice.lr;
  return "";
}

// What precision alone changes for the models that moved, as far as runs that differ only in it tell; `others` are the
// models without such runs.
std::string precision_text(const Rows& rows, const Claims& claims, const std::vector<Gain>& moved, int task,
                           std::vector<std::string>& others) {
  std::vector<std::string> by_precision, rest;
  for (const auto& gain : moved) {
    const auto of = [&](const char* protocol) { return figures_of_model(rows, claims, protocol, gain.model, task); };
    const auto precision = gain_between(gain.model, of(published_protocol), of("published but no delta_bf16"));
    if (precision) {
      by_precision.push_back(formatted("{} points for {}", signed_points(precision->size()), model_title(gain.model)));
      rest.push_back(signed_points(gain.size() - precision->size()));
    } else {
      others.push_back(model_title(gain.model));
    }
  }
  if (by_precision.empty()) return "";
  return formatted(" Changing only bfloat16 to mixed precision gives {}. All other changes together give {}{}.",
                   and_list(by_precision), and_list(rest), rest.size() > 1 ? ", in the same order" : "");
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
  return formatted(" The best of all is {} in such a run ({}), not {} ({}).", with_better->name,
                   share(most_with_better), as_run->name, share(most));
}

// What a deviation costs, grouped by task and scale.
std::string cost_of(const ClaimVerdict& verdict) {
  std::vector<std::string> places;
  std::map<std::string, std::vector<std::string>> by_place;
  for (const auto& stratum : verdict.scales)
    for (const auto& one : stratum.comparisons) {
      if (one.effect.n == 0 || one.failed() || one.effect.mean > -costly) continue;
      const std::string place =
          formatted("on task {} at {} ({} grammar{}{})", one.comparison->task, code(stratum.scale->name), one.effect.n,
                    one.effect.n == 1 ? "" : "s", one.interval ? "" : ", no interval");
      if (!by_place.contains(place)) places.push_back(place);
      by_place[place].push_back(formatted("{} points for {}", fixed(-one.effect.mean * 100, 1),
                                          model_title(one.comparison->a.front().model)));
    }
  for (auto& place : places) place = formatted("{} {}", and_list(by_place[place]), place);
  return places.empty() ? "" : formatted("{}: {}", verdict.claim->title, joined(places, "; "));
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
  std::vector<std::string> lost, unmeasured;
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
    if (auto text = cost_of(verdict); !text.empty()) lost.push_back(std::move(text));
  }
  if (measured == 0) return "";
  std::string out =
      formatted("Of {} faults of the code, {} {} measured alone, {} of them with one model only and {} at `paper`. ",
                measured + unmeasured.size(), measured, measured == 1 ? "was" : "were", one_model, at_paper) +
      (lost.empty()
           ? "None costs a point."
           : formatted("{} at least a point in some runs. {}.",
                       lost.size() == 1 ? "One costs" : formatted("{} cost", lost.size()), joined(lost, ". ")));
  if (!unmeasured.empty()) out += formatted(" Not measured: {}.", joined(unmeasured, "; "));
  return out + " The [details](findings/details.md#deviations-from-the-published-protocol) list models and scales.";
}

}  // namespace

PaperComparison reproduction_text(const Rows& rows, const Claims& claims, const ResultsTable& table) {
  std::vector<std::string> lines, unrun;
  PaperComparison out;
  Reproduced sums;
  for (int task = 1; task <= 3; ++task) {
    const auto [line, note] = reproduction_of(rows, claims, table, task, sums);
    if (line.empty())
      unrun.push_back(std::to_string(task));
    else
      lines.push_back(line);
    if (!note.empty()) out.notes.push_back(note);
  }
  if (lines.empty()) {
    out.text = "There are no runs of the published protocol at the paper's scale yet.\n";
    return out;
  }
  if (!unrun.empty())
    lines.push_back(formatted("Task{} {}: no runs yet.", unrun.size() == 1 ? "" : "s", and_list(unrun)));
  out.text =
      formatted(
          "**Is the paper reproduced?** {}in level, {} of {} accuracies are within the paper's own ±. Published "
          "protocol, the paper's scale, one setting for each model{}. The paper's numbers are means over seeds 1 "
          "to 4, which also draw the grammars, of the best of six settings, chosen on its test set, and are "
          "rounded to 1 point.\n\n",
          sums.same_order ? "In order, yes, up to differences of 1 point; " : "In order, not for all models; ",
          sums.inside, sums.figures,
          sums.grammars == 1 ? ", one run per model, on grammar 1, so there are no intervals" : "") +
      bullets(lines);
  return out;
}

PaperComparison corrections_text(const Rows& rows, const Claims& claims, const ResultsTable& table,
                                 const std::vector<ClaimVerdict>& deviations) {
  const std::vector<Choice> choices = choices_of(rows, claims);
  std::vector<std::string> lines;
  PaperComparison out;
  size_t most_grammars = 0;
  std::map<std::string, int> found_on;  // by model and learning rate: the task on which the rate was found
  for (int task = 1; task <= 3; ++task) {
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
    if (!any) continue;
    std::stable_sort(moved.begin(), moved.end(),
                     [](const Gain& a, const Gain& b) { return std::abs(a.size()) > std::abs(b.size()); });
    std::vector<std::string> parts, others, notes;
    for (const auto& d : moved) parts.push_back(text_of(d));
    if (parts.empty()) {
      lines.push_back(formatted("Task {}: no model moves by more than {} points.", task, fixed(moved_far * 100, 0)));
    } else {
      const std::string precision = precision_text(rows, claims, moved, task, others);
      lines.push_back(formatted(
          "Task {}: these models move by more than {} points: {}.{}{}", task, fixed(moved_far * 100, 0),
          and_list(parts), precision,
          others.empty() ? "" : formatted(" The causes were not measured separately for {}.", and_list(others))));
    }
    for (const auto& line : rates_below_chosen(table, choices, task, found_on)) notes.push_back(line);
    std::vector<std::string> worse;
    for (const auto& row : table)
      if (const auto at = row.cells.find({task, ResultColumn::corrected}); at != row.cells.end() && at->second.better)
        worse.push_back(
            formatted("{} ({} against {})", row.name, share(*at->second.better), share(*at->second.accuracy)));
    if (!worse.empty())
      notes.push_back(formatted(
          "Another run is better by more than {} point for {}. The footnotes give its settings. Which setting "
          "makes the difference was not measured.{}",
          fixed(clearly_better * 100, 0), and_list(worse), new_best(table, task)));
    if (!notes.empty()) out.notes.push_back(formatted("Task {}, corrected: {}", task, joined(notes, " ")));
  }
  if (lines.empty()) {
    out.text =
        "There are no models with runs of both protocols at the paper's scale yet, so this page cannot say what the "
        "corrections change there.\n";
    return out;
  }
  if (const std::string line = costs(deviations); !line.empty()) lines.push_back(line);
  out.text =
      formatted(
          "**What do the corrections change?** Besides the faults, the learning rate changes for most models and the "
          "residual for some. They were chosen at `{}`, or lowered here because training failed, so others may be "
          "better at this scale. The differences are the combined effect{}:\n\n",
          claims.choice_scale, most_grammars == 1 ? ", of one run of each protocol" : "") +
      bullets(lines);
  return out;
}

}  // namespace sb
