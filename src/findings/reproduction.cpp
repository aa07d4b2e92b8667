// The paper's numbers and the reproduced ones.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/page_claims.h"
#include "findings/page_text.h"
#include "findings/paper_gains.h"
#include "findings/protocol.h"

namespace sb {
namespace {

constexpr double far_from_paper = .03;  // a figure further away is named as one without a known cause

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

// "Mamba has a lower learning rate, because training collapsed at 0.001 …" for models whose run in the table has a
// lower rate than a failed one or, without one, than most models.
std::vector<std::string> lower_rates(const ResultsTable& table, int task) {
  std::map<std::string, size_t> uses;  // by learning rate
  const auto cell_of = [&](const ResultRow& row) -> const ResultValue* {
    const auto at = row.cells.find({task, ResultColumn::reproduced});
    return at == row.cells.end() || !at->second.accuracy ? nullptr : &at->second;
  };
  for (const auto& row : table)
    if (const ResultValue* value = cell_of(row); value && !value->lr.empty()) ++uses[value->lr];
  const auto usual =
      std::max_element(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::string> out;
  for (const auto& row : table) {
    const ResultValue* value = cell_of(row);
    if (!value || value->lr.empty()) continue;
    std::vector<std::string> higher;
    for (const auto& rate : value->failed_rates)
      if (parse_finite(rate) > parse_finite(value->lr)) higher.push_back(rate);
    if (!higher.empty())
      out.push_back(
          formatted("{} has a lower learning rate, because training collapsed at {}.", row.name, and_list(higher)));
    else if (parse_finite(value->lr) < parse_finite(usual->first) && !value->trained_rates.contains(usual->first))
      out.push_back(formatted("{} has a lower learning rate, {}; {} was not run.", row.name, value->lr, usual->first));
  }
  return out;
}

// Over all tasks: figures compared with the paper's, those within its ±, and grammars.
struct Reproduced {
  size_t figures = 0, below = 0, above = 0, grammars = 0;
  bool same_order = true;
  std::vector<std::string> tasks, unrun;  // with and without runs
  std::vector<std::string> inside;        // "GLA on task 3 (± 1.0)", within the paper's own ±
  std::vector<std::string> swapped;       // "Gated DeltaProduct above Mamba on task 1", by less than the order gap
  std::vector<std::string> farthest;      // one model per task: "DeltaNet on task 1 (+6.6 points)"
};

// "DeltaNet on task 1 (+6.6 points)", the model that moved most; empty if there is none.
std::string largest_text(const std::vector<Gain>& all, int task) {
  const auto most = std::max_element(
      all.begin(), all.end(), [](const Gain& a, const Gain& b) { return std::abs(a.size()) < std::abs(b.size()); });
  return most == all.end()
             ? ""
             : formatted("{} on task {} ({} points)", model_title(most->model), task, signed_points(most->size()));
}

// "Task 1: none of 7 models is within the paper's own ±. …"; empty without runs.
std::string reproduction_of(const Rows& rows, const Claims& claims, const ResultsTable& table, int task,
                            Reproduced& sums) {
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
      const std::string spread = fixed(paper->spread * 100, 1);
      inside.push_back(
          formatted("{} ({} points off, ± {})", model_title(model), fixed(std::abs(d.size()) * 100, 1), spread));
      sums.inside.push_back(formatted("{} on task {} (± {})", model_title(model), task, spread));
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
  for (const auto& d : all) {
    sums.below += d.size() < 0;
    sums.above += d.size() > 0;
    for (const auto& other : all)
      if (d.to > other.to && d.to <= other.to + order_gap && d.from < other.from)
        sums.swapped.push_back(
            formatted("{} above {} on task {}", model_title(d.model), model_title(other.model), task));
  }
  if (!all.empty()) sums.farthest.push_back(largest_text(all, task));
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
  for (const auto& line : lower_rates(table, task)) notes.push_back(line);
  if (!weak.empty())
    notes.push_back(formatted("Below the n-gram of the same grammar{}{}: {}.", grammars == 1 ? "" : "s",
                              paper_too ? ", as are the paper's numbers" : "", and_list(weak)));
  if (!failed.empty()) parts.push_back(formatted("Failed runs: {}.", and_list(failed)));
  parts.insert(parts.end(), notes.begin(), notes.end());
  return formatted("Task {}: {}", task, joined(parts, " "));
}

}  // namespace

PaperComparison reproduction_text(const Rows& rows, const Claims& claims, const ResultsTable& table) {
  std::vector<std::string> lines;
  Reproduced sums;
  for (int task = 1; task <= 3; ++task) {
    const std::string line = reproduction_of(rows, claims, table, task, sums);
    (line.empty() ? sums.unrun : sums.tasks).push_back(std::to_string(task));
    if (!line.empty()) lines.push_back(line);
  }
  PaperComparison out;
  if (lines.empty()) {
    out.brief = "There are no runs of the published protocol at the paper's scale yet.\n";
    out.text = "No runs yet.\n";
    return out;
  }
  if (!sums.unrun.empty())
    lines.push_back(formatted("Task{} {}: no runs yet.", sums.unrun.size() == 1 ? "" : "s", and_list(sums.unrun)));
  const std::string gap = fixed(order_gap * 100, 0);
  std::vector<std::string> sentences;
  if (sums.figures > 1)
    sentences.push_back(
        formatted("In order, {} that are more than {} point apart here have the opposite order in the paper.{}",
                  !sums.same_order       ? "not for all models: some"
                  : sums.swapped.empty() ? "yes: no two models"
                                         : "yes, except for close models: no two",
                  gap, sums.swapped.empty() ? "" : formatted(" Swapped: {}.", and_list(sums.swapped))));
  sentences.push_back(
      formatted("In level, {} of {} accuracies are within the paper's own ±{}; {} are below the paper, {} above.",
                sums.inside.size(), sums.figures, sums.inside.empty() ? "" : formatted(": {}", and_list(sums.inside)),
                sums.below, sums.above));
  if (!sums.farthest.empty()) sentences.push_back(formatted("Farthest away: {}.", and_list(sums.farthest)));
  sentences.push_back(formatted("Task{} {} {} run{}.", sums.tasks.size() == 1 ? "" : "s", and_list(sums.tasks),
                                sums.tasks.size() == 1 ? "was" : "were",
                                sums.grammars == 1
                                    ? ", once per model and on grammar 1, so there are no intervals; the "
                                      "paper averages four grammars"
                                    : ""));
  out.brief = formatted("**Is the paper reproduced?** {}\n", joined(sentences, " "));
  out.text =
      "Published protocol, one setting for each model. The paper's numbers are means over seeds 1 to 4, which also "
      "draw "
      "the grammars, of the best of six settings, chosen on its test set, and are rounded to 1 point.\n\n" +
      bullets(lines);
  return out;
}

}  // namespace sb
