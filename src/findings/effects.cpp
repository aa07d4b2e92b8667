#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/arm_values.h"
#include "findings/arms.h"
#include "findings/choices.h"
#include "findings/gate_parameters.h"
#include "findings/gatherer.h"
#include "report/cells.h"

namespace sb {
namespace {

// Whether the mean of an arm is close to its ceiling: it could not be much better, whatever the model is.
bool is_near_ceiling(const std::map<Unit, double>& values, const ArmFigures& arm) {
  double sum = 0;
  size_t count = 0;
  for (const auto& [unit, value] : values)
    if (const auto ceiling = arm.ceilings.find(unit); ceiling != arm.ceilings.end()) {
      sum += ceiling->second - value;
      ++count;
    }
  return count > 0 && sum / static_cast<double>(count) < near_ceiling;
}

// Removes levels of a slope that have fewer grammars than the others: a slope needs its grammar at every level. Changes
// nothing if fewer than two levels would stay.
void keep_levels_with_most_grammars(LevelValues& values, std::map<Level, size_t>& groups) {
  size_t most = 0;
  for (const auto& [level, units] : values) most = std::max(most, units.size());
  const auto is_short = [most](const auto& entry) { return entry.second.size() < most; };
  if (values.size() < 2 + static_cast<size_t>(std::count_if(values.begin(), values.end(), is_short))) return;
  std::erase_if(values, is_short);
  std::erase_if(groups, [&values](const auto& entry) { return !values.contains(entry.first); });
}

// "train.lr 0.008, train.warmup 476" of the chosen setting.
std::string setting_text(const Rows& rows, const Group& group) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < rows.axes.select.size(); ++i)
    parts.push_back(formatted("{} {}", rows.axes.select[i], plain_value(group.candidates[*group.chosen].settings[i])));
  return joined(parts, ", ");
}

}  // namespace

// Whether one of the arms could have tried more learning rates than the other, which must not count: two variants
// of one model, or a model whose settings were chosen and one whose were not.
bool Gatherer::shares_settings() const {
  const std::string &a = c_.a.front().model, &b = c_.b.front().model;
  if (a == b) return true;
  if (scale_.name != claims_.choice_scale) return false;
  const auto tuned = tuned_models(rows_, claims_);
  return tuned.contains(a) != tuned.contains(b);
}

// Computes a - b at each level, for pairs of groups of matching size.
void Gatherer::two_arms(Figures& out, const Members& members) {
  const auto left = by_level(members[0]), right = by_level(members[1]);
  std::map<Level, std::pair<size_t, size_t>> pairs;
  for (const auto& [level, groups] : left)
    if (const auto other = right.find(level); other != right.end())
      if (const auto pair = matching({groups, other->second})) pairs[level] = {(*pair)[0], (*pair)[1]};
  if (pairs.empty() || (c_.from > 0 && pairs.size() < 2)) {
    out.found = false;
    unmatched_ = pairs.empty();
    return;
  }
  out.levels = pairs.size();
  if (counted(c_.statistic)) {
    const bool keys = c_.statistic == Statistic::gate_parameters;
    const auto& [a, b] = pairs.begin()->second;
    out.a.params = {params_of(rows_, a)};
    out.b.params = {params_of(rows_, b)};
    out.a.gate_parameters = gate_parameters(some_result(rows_, rows_.groups[a]), keys);
    out.b.gate_parameters = gate_parameters(some_result(rows_, rows_.groups[b]), keys);
    return;
  }
  std::map<Unit, std::vector<double>> x, y;
  std::map<Unit, std::pair<std::vector<double>, std::vector<double>>> own;
  std::vector<GroupsByLevel> groups(2);
  std::vector<LevelValues> values(2);
  std::string rate_a, rate_b;  // of a drop: one per arm, so that only the task differs
  if (c_.from > 0) {
    const auto& [first, last] = std::pair(pairs.begin()->second, pairs.rbegin()->second);
    rate_a = common_rate(rows_, claims_, rows_.groups[first.first], rows_.groups[last.first]);
    rate_b = common_rate(rows_, claims_, rows_.groups[first.second], rows_.groups[last.second]);
  }
  const bool share = c_.from == 0 && shares_settings();
  const auto candidate_of = [&](size_t group, size_t other, const std::string& rate) {
    const auto found = share          ? shared_candidate(rows_, claims_, rows_.groups[group], rows_.groups[other])
                       : rate.empty() ? std::nullopt
                                      : candidate_at(rows_, rows_.groups[group], rate);
    if (found) candidates_[group] = *found;
    if (share && found) out.unshared.insert(setting_text(rows_, rows_.groups[group]));
    return found;
  };
  for (const auto& [level, pair] : pairs) {
    const auto a = arm_values(rows_, claims_, c_, pair.first, out.a, candidate_of(pair.first, pair.second, rate_a)),
               b = arm_values(rows_, claims_, c_, pair.second, out.b, candidate_of(pair.second, pair.first, rate_b));
    if (c_.statistic == Statistic::accuracy || (c_.from > 0 && level.front() == std::to_string(c_.from)))
      out.at_ceiling = is_near_ceiling(a, out.a) && is_near_ceiling(b, out.b);
    groups[0][level] = pair.first;
    groups[1][level] = pair.second;
    values[0][level] = a;
    values[1][level] = b;
    for (const auto& [unit, value] : a)
      if (const auto other = b.find(unit); other != b.end()) {
        const bool ratio = c_.statistic == Statistic::throughput, logarithm = c_.statistic == Statistic::excess_ratio;
        if (logarithm && (value <= 0 || other->second <= 0)) continue;
        x[unit].push_back(level_value(pair.first, unit, level));
        y[unit].push_back(logarithm ? std::log(value / other->second)
                          : ratio   ? value / other->second - 1
                                    : value - other->second);
        own[unit].first.push_back(value);
        own[unit].second.push_back(other->second);
      }
  }
  if (c_.statistic != Statistic::throughput) name_lacking(out, groups, values);
  for (const auto& [unit, differences] : y) {
    if (const auto effect = over_levels(x[unit], differences, pairs.size())) out.effects[unit] = *effect;
    if (const auto value = over_levels(x[unit], own[unit].first, pairs.size())) out.a.values[unit] = *value;
    if (const auto value = over_levels(x[unit], own[unit].second, pairs.size())) out.b.values[unit] = *value;
  }
}

// Combines the values of a unit over its levels; nullopt if a level is missing or a slope has only one.
std::optional<double> Gatherer::over_levels(const std::vector<double>& x, const std::vector<double>& y,
                                            size_t levels) const {
  if (y.size() != levels) return std::nullopt;
  if (c_.from == 0) return levels_ ? slope(x, y) : std::optional(y.front());
  const auto rise = slope(x, y);  // per task number
  return rise ? std::optional(-*rise * (c_.task - c_.from)) : std::nullopt;
}

// One group per model and level: at a level that all models have, groups of matching size if there are any, of the
// largest ones; else the largest of each model.
std::vector<Gatherer::GroupsByLevel> Gatherer::networks_of(const Members& members) const {
  std::vector<GroupsByLevel> out(members.size());
  std::map<Level, std::vector<std::vector<size_t>>> sizes;
  for (size_t m = 0; m < members.size(); ++m)
    for (auto& [level, groups] : by_level(members[m])) {
      out[m][level] = groups.front();
      sizes[level].push_back(std::move(groups));
    }
  for (const auto& [level, models] : sizes) {
    if (models.size() < members.size()) continue;
    if (const auto groups = matching(models))
      for (size_t m = 0; m < members.size(); ++m) out[m][level] = (*groups)[m];
  }
  return out;
}

// For every size of the first model, the largest one of each other model that is alike, else the nearest. Of these, the
// largest that are all alike; if none are, those with the smallest ratio.
std::optional<std::vector<size_t>> Gatherer::matching(const std::vector<std::vector<size_t>>& models) const {
  constexpr double within = 1.25;  // two sizes within 10 % of one target
  const double alike = std::min(within, match_);
  const auto size = [&](size_t group) { return static_cast<double>(std::max<int64_t>(1, params_of(rows_, group))); };
  std::optional<std::vector<size_t>> best;
  std::pair<double, double> most;
  for (const size_t first : models.front()) {
    const auto rank = [&](size_t group) {
      const double ratio = std::max(size(group), size(first)) / std::min(size(group), size(first));
      return std::pair(-std::max(alike, ratio), size(group));
    };
    std::vector<size_t> groups = {first};
    for (size_t m = 1; m < models.size(); ++m)
      groups.push_back(
          *std::max_element(models[m].begin(), models[m].end(), [&](size_t x, size_t y) { return rank(x) < rank(y); }));
    const auto [least, largest] =
        std::minmax_element(groups.begin(), groups.end(), [&](size_t x, size_t y) { return size(x) < size(y); });
    const double ratio = size(*largest) / size(*least);
    const std::pair<double, double> now{-std::max(alike, ratio), size(*least)};
    if (ratio > match_ || (best && now <= most)) continue;
    most = now;
    best = std::move(groups);
  }
  return best;
}

// Per unit: the mean over models (or the agreement of their orders), of the accuracy or of its slope.
void Gatherer::one_arm(Figures& out, const Members& members) {
  std::vector<LevelValues> values(members.size());
  std::vector<GroupsByLevel> groups = networks_of(members);
  out.at_ceiling = c_.statistic == Statistic::published_order || c_.statistic == Statistic::task_order;
  for (size_t m = 0; m < members.size(); ++m)
    for (const auto& [level, group] : groups[m]) {
      values[m][level] = arm_values(rows_, claims_, c_, group, out.a);
      out.at_ceiling &= is_near_ceiling(values[m][level], out.a);
    }
  for (const auto& each : values) out.all_levels = std::max(out.all_levels, each.size());
  if (c_.statistic == Statistic::slope)
    for (size_t m = 0; m < members.size(); ++m) keep_levels_with_most_grammars(values[m], groups[m]);
  out.levels = values.front().size();
  for (const auto& each : values) out.levels = std::min(out.levels, each.size());
  name_lacking(out, groups, values);
  if (c_.statistic == Statistic::published_order) {
    compare_order(out, values, published_order());
  } else if (c_.statistic == Statistic::task_order) {
    compare_order(out, values, order_elsewhere(out));
  } else if (c_.statistic == Statistic::rank_correlation) {
    Orders orders = orders_of(values, by_size_, match_);
    out.levels = orders.levels;
    if (out.levels < 2)
      out.missing.push_back(formatted("runs of every model {}: an order is compared with another one", second_level()));
    out.effects = std::move(orders.correlations);
  } else {
    mean_of_models(out, values, groups);
    if (levels_ && out.levels < 2) out.missing.push_back(formatted("runs {}: a slope needs two", second_level()));
  }
  out.a.values = out.effects;
}

void Gatherer::mean_of_models(Figures& out, const std::vector<LevelValues>& values,
                              const std::vector<GroupsByLevel>& groups) const {
  std::vector<std::map<Unit, double>> models(values.size());
  for (size_t m = 0; m < values.size(); ++m) {
    std::map<Unit, std::pair<std::vector<double>, std::vector<double>>> curves;
    for (const auto& [level, units] : values[m])
      for (const auto& [unit, value] : units) {
        curves[unit].first.push_back(level_value(groups[m].at(level), unit, level));
        curves[unit].second.push_back(value);
      }
    for (const auto& [unit, curve] : curves)
      if (const auto one = over_levels(curve.first, curve.second, values[m].size())) models[m][unit] = *one;
  }
  out.models.resize(models.size());
  for (const auto& [unit, first] : models.front()) {
    if (!std::all_of(models.begin(), models.end(), [&](const auto& model) { return model.contains(unit); })) continue;
    double sum = 0;
    for (size_t m = 0; m < models.size(); ++m) sum += out.models[m][unit] = models[m][unit];
    out.effects[unit] = sum / static_cast<double>(models.size());
  }
}

// Published perplexities of the models, negated: lower is better.
std::vector<double> Gatherer::published_order() const {
  std::vector<double> out;
  if (const PublishedFigures* figures = claims_.published_figures(c_.published))
    for (const auto& model : c_.a)
      for (const auto& row : figures->rows)
        if (row.model == model.model) out.push_back(-row.perplexity);
  return out;
}

// Mean of each model's figure in the comparison `with`, over the grammars that all of them have; empty if there is
// none.
std::vector<double> Gatherer::order_elsewhere(Figures& out) const {
  Comparison with = c_.with.front();
  with.a = c_.a;
  const Figures theirs = figures_of(rows_, claims_, scale_, protocol_, with);
  out.missing.insert(out.missing.end(), theirs.missing.begin(), theirs.missing.end());
  if (theirs.a.runs == 0 && theirs.a.failed.empty())
    out.a.failed.clear();  // no runs of the comparison yet, so none failed
  out.a.failed.insert(out.a.failed.end(), theirs.a.failed.begin(), theirs.a.failed.end());
  out.b.own_tests = theirs.a.own_tests;
  std::vector<double> means;
  if (theirs.effects.empty()) return means;
  for (const auto& model : theirs.models) {
    double sum = 0;
    for (const auto& [unit, value] : model) sum += value;
    means.push_back(sum / static_cast<double>(model.size()));
  }
  return means;
}

// Kendall's tau between accuracies here, by grammar, and these figures of the models.
void Gatherer::compare_order(Figures& out, const std::vector<LevelValues>& values,
                             const std::vector<double>& theirs) const {
  for (const auto& [unit, first] : values.front().begin()->second) {
    std::vector<double> ours;
    for (const auto& model : values) {
      const auto& units = model.begin()->second;
      if (const auto it = units.find(unit); it != units.end()) ours.push_back(it->second);
    }
    if (ours.size() != theirs.size()) continue;
    if (const auto tau = rank_correlation(ours, theirs)) out.effects[unit] = *tau;
  }
}

// log10 of the size or of the key, the task number, or the entropy of that grammar.
double Gatherer::level_value(size_t group, const Unit& unit, const Level& level) const {
  if (!levels_) return 0;
  if (by_size_) return std::log10(std::max(1.0, parse_finite(level.front()).value_or(1)));
  if (c_.from > 0) return parse_finite(level.front()).value_or(0);
  if (c_.over == "topological_entropy") {
    for (const size_t run : rows_.groups[group].averaged)
      if (grammar_of(rows_, run) == unit) return rows_.runs[run].result.topological_entropy.value_or(0);
    return 0;
  }
  return std::log10(std::max(1e-300, parse_finite(rows_.groups[group].value(c_.over)).value_or(1)));
}

}  // namespace sb
