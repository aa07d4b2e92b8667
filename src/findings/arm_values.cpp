#include "findings/arm_values.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/arms.h"
#include "report/cells.h"

namespace sb {
namespace {

std::optional<double> value_of(const TableRun& run, const Group& group, const Comparison& c) {
  const auto points = points_of(run);
  const auto own = points.find(Point{});
  if (own == points.end()) return std::nullopt;
  const double chance = c.against_chance ? run.result.chance : 0;
  if (c.gaps.empty()) return own->second->accuracy - chance;
  double sum = 0;
  for (const int gap : c.gaps) {
    const auto at = points.find(Point{gap, "", 0});
    if (at == points.end()) return std::nullopt;
    sum += at->second->accuracy;
  }
  const double mean = sum / static_cast<double>(c.gaps.size());
  if (c.statistic == Statistic::gap_accuracy) return mean - chance;
  const auto trained = parse_integer(group.value("task.gap_max"));
  const auto base = trained ? points.find(Point{static_cast<int>(*trained), "", 0}) : points.end();
  const double whole = (base == points.end() ? own->second : base->second)->accuracy;
  return whole > 0 ? std::optional(mean / whole) : std::nullopt;
}

std::vector<Point> points_asked(const Comparison& c) {
  std::vector<Point> asked;
  for (const int gap : c.gaps) asked.push_back(Point{gap, "", 0});
  if (asked.empty()) asked.emplace_back();
  return asked;
}

// N-gram and ceiling of what value_of measures; the same for every run of a grammar but for the samples they were taken
// over.
std::optional<double> n_gram_of(const TableRun& run, const Comparison& c) {
  const std::vector<Point> asked = points_asked(c);
  double sum = 0;
  for (const auto& point : asked) {
    const auto found = n_gram_of(run.result, point);
    if (!found) return std::nullopt;
    sum += found->accuracy;
  }
  return sum / static_cast<double>(asked.size());
}

std::optional<double> ceiling_of(const TableRun& run, const Comparison& c) {
  const auto points = points_of(run);
  const std::vector<Point> asked = points_asked(c);
  double sum = 0;
  for (const auto& point : asked) {
    const auto at = points.find(point);
    if (at == points.end() || !at->second->ceiling) return std::nullopt;
    sum += at->second->ceiling->accuracy;
  }
  return sum / static_cast<double>(asked.size());
}

}  // namespace

std::map<Unit, double> arm_values(const Rows& rows, const Comparison& comparison, size_t number, ArmFigures& arm) {
  const Group& group = rows.groups[number];
  std::vector<size_t> runs;
  std::vector<double> values;
  std::map<Unit, size_t> counts;
  for (const size_t run : group.averaged) {
    if (const auto value = value_of(rows.runs[run], group, comparison)) {
      runs.push_back(run);
      values.push_back(*value);
      ++counts[grammar_of(rows, run)];
      if (auto words = collapsed_run(rows, run)) arm.collapsed.push_back(std::move(*words));
      if (const auto n_gram = n_gram_of(rows.runs[run], comparison)) arm.n_grams[grammar_of(rows, run)] = *n_gram;
      if (const auto ceiling = ceiling_of(rows.runs[run], comparison)) arm.ceilings[grammar_of(rows, run)] = *ceiling;
    } else {
      arm.unmeasured.push_back(group.model() + ", " + seeds_text(rows, run));
    }
  }
  if (group.chosen) {
    for (const size_t run : group.candidates[*group.chosen].diverged)
      arm.diverged.push_back(diverged_run(rows, run).words);
  } else {
    for (const auto& candidate : group.candidates)
      for (const size_t run : candidate.diverged) arm.diverged.push_back(diverged_run(rows, run).words);
  }
  arm.swept |= group.candidates.size() > 1;
  arm.params.push_back(params_of(rows, number));
  for (const auto& [unit, count] : counts) {
    arm.runs += count;
    arm.fewest = arm.fewest == 0 ? count : std::min(arm.fewest, count);
    arm.most = std::max(arm.most, count);
  }
  return means_by_grammar(rows, runs, values);
}

std::optional<std::string> how_lacking(const Rows& rows, size_t number, const Unit& grammar, const Comparison& c) {
  const Group& group = rows.groups[number];
  const auto among = [&](const std::vector<size_t>& runs) {
    return std::any_of(runs.begin(), runs.end(), [&](size_t run) { return grammar_of(rows, run) == grammar; });
  };
  if (among(group.averaged)) return formatted(": `eval RUN --save` with gaps of {} frames", joined(c.gaps, ", "));
  for (size_t i = 0; i < group.candidates.size(); ++i)
    if ((!group.chosen || group.chosen == i) && among(group.candidates[i].diverged)) return std::nullopt;
  for (const auto& candidate : group.candidates)
    if (among(candidate.runs)) return ", at every setting that was selected over";
  for (const auto& run : rows.absent)
    if (run.config == group.config && run.grammar == grammar)
      return formatted(", there and {} ({})", to_string(lost_run(run).why), printable(run.id, 64));
  return "";
}

}  // namespace sb
