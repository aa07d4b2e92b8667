#include "findings/population.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "findings/arm_values.h"
#include "findings/arms.h"
#include "findings/gate_parameters.h"
#include "findings/orders.h"
#include "report/cells.h"

namespace sb {
namespace {

struct Place {
  size_t group = 0;
  Level level;
};

class Gatherer {
 public:
  Gatherer(const Rows& rows, const Claims& claims, const Scale& scale, const Comparison& comparison)
      : rows_(rows), claims_(claims), scale_(scale), c_(comparison) {
    levels_ = c_.statistic == Statistic::slope || c_.statistic == Statistic::rank_correlation;
    by_size_ = c_.over == "params";
    match_ = c_.match.value_or(scale_.match);
    if (const auto it = claims.task_keys.find(c_.task); it != claims.task_keys.end()) keys_ = it->second;
    for (const auto& [key, value] : c_.keys) keys_[key] = value;
    arms_ = c_.a;
    arms_.insert(arms_.end(), c_.b.begin(), c_.b.end());
  }

  Figures make() {
    place_groups();
    place_absent();
    Figures best;
    size_t whole = 0;
    for (const auto& [key, members] : strata_) {
      Figures one = of_stratum(members);
      if (!one.found) continue;
      ++whole;
      const auto rank = [](const Figures& f) { return std::pair(f.effects.size(), f.updates); };
      if (!best.found || rank(one) > rank(best)) best = std::move(one);
    }
    best.other_strata = whole > 0 ? whole - 1 : 0;
    best.lost = std::move(lost_);
    if (!best.found) name_missing_arms(best);
    return best;
  }

 private:
  // By arm: the groups of one stratum.
  using Members = std::vector<std::vector<Place>>;

  void place_groups() {
    for (size_t g = 0; g < rows_.groups.size(); ++g) {
      const Group& group = rows_.groups[g];
      if (!of_task(group) || !of_scale(rows_, group, scale_, c_.free, by_size_)) continue;
      if (claims_.withheld.contains(group.model())) continue;
      for (size_t arm = 0; arm < arms_.size(); ++arm)
        if (fits(group, arms_[arm])) {
          auto& members = strata_[stratum_of(group)];
          members.resize(arms_.size());
          members[arm].push_back({g, level_of(g)});
          for (const auto& candidate : group.candidates)
            for (const size_t run : candidate.diverged) lost_.push_back(diverged_run(rows_, run));
        }
    }
  }

  // Runs of the population that left no figure. What is not finished does not say how many parameters it has: those of
  // the same network do, where there is one.
  void place_absent() {
    unfinished_.assign(arms_.size(), 0);
    for (const auto& run : rows_.absent) {
      if (run.config.empty()) continue;
      const Group group{run.config, {}, std::nullopt, {}};
      if (!of_task(group) || !may_be_of_scale(rows_, group, scale_, c_.free, by_size_)) continue;
      for (size_t arm = 0; arm < arms_.size(); ++arm) {
        if (!fits(group, arms_[arm])) continue;
        lost_.push_back(lost_run(run));
        if (run.why == MissingRun::Why::unfinished) ++unfinished_[arm];
      }
    }
  }

  bool of_task(const Group& group) const {
    const std::string task = group.value("task.number");
    return (task == std::to_string(c_.task) || (c_.task == 4 && task == "2")) && meets(group, keys_, c_.free);
  }

  ConfigMap stratum_of(const Group& group) const {
    ConfigMap out = group.config;
    std::erase_if(out, [&](const auto& entry) {
      const std::string& key = entry.first;
      return (key.starts_with("model.") && key != "model.layers" && key != "model.dropout") || key == "quirks" ||
             key == "run.label" || key == "train.accumulate" || key == "eval.every" || contains(c_.free, key) ||
             (c_.gaps.empty() && (key == "eval.gaps" || key == "eval.grid_samples"));
    });
    return out;
  }

  Level level_of(size_t group) const {
    if (by_size_) return {std::to_string(params_of(rows_, group))};
    Level out;
    if (levels_)
      for (const auto& key : c_.free) out.push_back(rows_.groups[group].value(key));
    return out;
  }

  // The groups of an arm by level; where a level has several sizes, all of them, the largest first.
  std::map<Level, std::vector<size_t>> by_level(const std::vector<Place>& places) const {
    std::map<Level, std::vector<size_t>> out;
    for (const auto& place : places) out[place.level].push_back(place.group);
    for (auto& [level, groups] : out)
      std::stable_sort(groups.begin(), groups.end(), [&](size_t x, size_t y) {
        const auto rank = [&](size_t g) { return std::pair(params_of(rows_, g), rows_.groups[g].averaged.size()); };
        return rank(x) > rank(y);
      });
    return out;
  }

  Figures of_stratum(const Members& members) {
    Figures out;
    for (const auto& places : members)
      if (places.empty()) return out;
    out.found = true;
    out.updates = some_result(rows_, rows_.groups[members.front().front().group]).updates;
    if (!c_.b.empty()) {
      two_arms(out, members);
    } else {
      one_arm(out, members);
    }
    return out;
  }

  // a - b by level; matched in size.
  void two_arms(Figures& out, const Members& members) {
    const auto left = by_level(members[0]), right = by_level(members[1]);
    std::map<Level, std::pair<size_t, size_t>> pairs;
    for (const auto& [level, groups] : left)
      if (const auto other = right.find(level); other != right.end())
        if (const auto pair = matched(groups, other->second)) pairs[level] = *pair;
    if (pairs.empty()) {
      out.found = false;
      unmatched_ = true;
      return;
    }
    out.levels = pairs.size();
    if (c_.statistic == Statistic::gate_parameters) {
      const auto& [a, b] = pairs.begin()->second;
      out.a.params = {params_of(rows_, a)};
      out.b.params = {params_of(rows_, b)};
      out.a.gate_parameters = gate_parameters(some_result(rows_, rows_.groups[a]));
      out.b.gate_parameters = gate_parameters(some_result(rows_, rows_.groups[b]));
      return;
    }
    std::map<Unit, std::vector<double>> x, y;
    std::map<Unit, std::pair<std::vector<double>, std::vector<double>>> own;
    std::vector<std::map<Level, size_t>> groups(2);
    std::vector<LevelValues> values(2);
    for (const auto& [level, pair] : pairs) {
      const auto a = arm_values(rows_, c_, pair.first, out.a), b = arm_values(rows_, c_, pair.second, out.b);
      groups[0][level] = pair.first;
      groups[1][level] = pair.second;
      values[0][level] = a;
      values[1][level] = b;
      for (const auto& [unit, value] : a)
        if (const auto other = b.find(unit); other != b.end()) {
          x[unit].push_back(level_value(pair.first, unit, level));
          y[unit].push_back(value - other->second);
          own[unit].first.push_back(value);
          own[unit].second.push_back(other->second);
        }
    }
    name_lacking(out, groups, values);
    for (const auto& [unit, differences] : y) {
      if (const auto effect = over_levels(x[unit], differences, pairs.size())) out.effects[unit] = *effect;
      if (const auto value = over_levels(x[unit], own[unit].first, pairs.size())) out.a.values[unit] = *value;
      if (const auto value = over_levels(x[unit], own[unit].second, pairs.size())) out.b.values[unit] = *value;
    }
  }

  // One figure of a unit's levels; nothing where a level is missing or a slope has no two.
  std::optional<double> over_levels(const std::vector<double>& x, const std::vector<double>& y, size_t levels) const {
    if (y.size() != levels) return std::nullopt;
    return levels_ ? slope(x, y) : std::optional(y.front());
  }

  std::optional<std::pair<size_t, size_t>> matched(const std::vector<size_t>& a, const std::vector<size_t>& b) const {
    std::optional<std::pair<size_t, size_t>> best;
    std::pair<double, double> most{-1, 0};
    for (const size_t x : a)
      for (const size_t y : b) {
        const double p = static_cast<double>(std::max<int64_t>(1, params_of(rows_, x)));
        const double q = static_cast<double>(std::max<int64_t>(1, params_of(rows_, y)));
        const double ratio = std::max(p, q) / std::min(p, q);
        if (ratio > match_) continue;
        const std::pair<double, double> rank{std::min(p, q), -ratio};
        if (!best || rank > most) {
          best = {x, y};
          most = rank;
        }
      }
    return best;
  }

  // The mean over models (or their order) by unit, of the accuracy or of its slope.
  void one_arm(Figures& out, const Members& members) {
    std::vector<LevelValues> values(members.size());
    std::vector<std::map<Level, size_t>> groups(members.size());
    for (size_t m = 0; m < members.size(); ++m)
      for (const auto& [level, sizes] : by_level(members[m])) {
        groups[m][level] = sizes.front();
        values[m][level] = arm_values(rows_, c_, sizes.front(), out.a);
      }
    out.levels = values.front().size();
    for (const auto& each : values) out.levels = std::min(out.levels, each.size());
    name_lacking(out, groups, values);
    if (c_.statistic == Statistic::rank_correlation) {
      Orders orders = orders_of(values, by_size_, match_);
      out.levels = orders.levels;
      if (out.levels < 2)
        out.missing.push_back(
            formatted("runs of every model {}: an order is held against another one", second_level()));
      out.effects = out.a.values = std::move(orders.correlations);
      return;
    }
    std::map<Unit, std::pair<double, size_t>> sums;
    for (size_t m = 0; m < members.size(); ++m) {
      std::map<Unit, std::pair<std::vector<double>, std::vector<double>>> curves;
      for (const auto& [level, units] : values[m])
        for (const auto& [unit, value] : units) {
          curves[unit].first.push_back(level_value(groups[m][level], unit, level));
          curves[unit].second.push_back(value);
        }
      for (const auto& [unit, curve] : curves)
        if (const auto one = over_levels(curve.first, curve.second, values[m].size())) {
          sums[unit].first += *one;
          ++sums[unit].second;
        }
    }
    for (const auto& [unit, sum] : sums)
      if (sum.second == members.size()) out.effects[unit] = sum.first / static_cast<double>(sum.second);
    out.a.values = out.effects;
    if (levels_ && out.levels < 2) out.missing.push_back(formatted("runs {}: a slope needs two", second_level()));
  }

  // log10 of the size or of the key, or the entropy of that grammar.
  double level_value(size_t group, const Unit& unit, const Level& level) const {
    if (!levels_) return 0;
    if (by_size_) return std::log10(std::max(1.0, parse_finite(level.front()).value_or(1)));
    if (c_.over == "topological_entropy") {
      for (const size_t run : rows_.groups[group].averaged)
        if (grammar_of(rows_, run) == unit) return rows_.runs[run].result.topological_entropy.value_or(0);
      return 0;
    }
    return std::log10(std::max(1e-300, parse_finite(rows_.groups[group].value(c_.over)).value_or(1)));
  }

  // Grammars that some model has at some level and another one, or level, lacks, and why. Diverged runs are not
  // missing: run again they would diverge.
  void name_lacking(Figures& out, const std::vector<std::map<Level, size_t>>& groups,
                    const std::vector<LevelValues>& values) const {
    constexpr size_t most_named = 3;
    std::set<Unit> all;
    for (const auto& model : values)
      for (const auto& [level, units] : model)
        for (const auto& [unit, value] : units) all.insert(unit);
    std::vector<std::pair<std::string, std::vector<size_t>>> lacking;  // "on grammar seeds 1, 2 …": groups
    for (size_t m = 0; m < groups.size(); ++m)
      for (const auto& [level, group] : groups[m])
        for (const auto& what : lacked(group, values[m].at(level), all)) {
          auto at = std::find_if(lacking.begin(), lacking.end(), [&](const auto& each) { return each.first == what; });
          if (at == lacking.end()) at = lacking.insert(lacking.end(), {what, {}});
          at->second.push_back(group);
        }
    for (const auto& [what, where] : lacking) {
      if (where.size() > most_named)
        out.missing.push_back(places_text(where) + " " + what);
      else
        for (const size_t group : where) out.missing.push_back(place_text(group) + " " + what);
    }
  }

  // "gla, mamba, mamba2 and s4 (task 1)": each model once, however many of its levels these are.
  std::string places_text(const std::vector<size_t>& groups) const {
    std::vector<std::string> models;
    for (const size_t group : groups)
      if (const std::string model = arm_name(group); !contains(models, model)) models.push_back(model);
    const std::string last = models.back();
    models.pop_back();
    return (models.empty() ? last : joined(models, ", ") + " and " + last) + formatted(" (task {})", c_.task) +
           (groups.size() > models.size() + 1
                ? formatted(", {} of their sizes of {} together,", groups.size(), by_size_ ? "network" : "grammar")
                : "");
  }

  // Where to run for a slope or an order that has one level only.
  std::string second_level() const {
    if (by_size_) return "at a second size of the networks";
    if (c_.over != "topological_entropy") return "at a second value of " + c_.over;
    std::vector<std::string> keys;
    for (const auto& key : c_.free) keys.push_back(last_part(key));
    return "on grammars of a second size (another " + joined(keys, ", ") + ")";
  }

  static std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

  // "on grammar seeds 1, 2" of one model at one level, by why it lacks them.
  std::vector<std::string> lacked(size_t group, const std::map<Unit, double>& has, const std::set<Unit>& all) const {
    std::map<std::string, std::vector<std::string>> seeds;
    for (const auto& unit : all)
      if (!has.contains(unit))
        if (const auto how = how_lacking(rows_, group, unit, c_)) seeds[*how].push_back(unit_text(unit));
    std::vector<std::string> out;
    for (const auto& [how, units] : seeds)
      out.push_back(formatted("on grammar seed{} {}{}", units.size() == 1 ? "" : "s", joined(units, ", "), how));
    return out;
  }

  std::string place_text(size_t group) const {
    if (by_size_)
      return group_text(group) +
             formatted(" of {} parameters", grouped(static_cast<uint64_t>(params_of(rows_, group))));
    return levels_ ? group_text(group) + level_text(group) : group_text(group);
  }

  // What tells the level of the group from others: the key, or all that is free.
  std::string level_text(size_t group) const {
    const std::string value = rows_.groups[group].value(c_.over);
    if (!value.empty()) return formatted(" at {} {}", c_.over, plain_value(value));
    std::vector<std::string> parts;
    for (const auto& key : c_.free) parts.push_back(last_part(key) + " " + plain_value(rows_.groups[group].value(key)));
    return " with grammars of " + joined(parts, ", ") + ",";
  }

  std::string unit_text(const Unit& unit) const {
    std::vector<std::string> parts;
    for (const auto& part : unit) parts.push_back(plain_value(part));
    return joined(parts, "/");
  }

  std::string arm_name(size_t number) const {
    for (const auto& arm : arms_)
      if (fits(rows_.groups[number], arm)) return arm.text();
    return rows_.groups[number].model();
  }
  std::string group_text(size_t number) const { return arm_name(number) + formatted(" (task {})", c_.task); }

  void name_missing_arms(Figures& out) const {
    std::set<size_t> seen;
    for (const auto& [key, members] : strata_)
      for (size_t arm = 0; arm < members.size(); ++arm)
        if (!members[arm].empty()) seen.insert(arm);
    const std::string where = formatted(" on task {} at scale {}", c_.task, scale_.name);
    for (size_t arm = 0; arm < arms_.size(); ++arm) {
      if (seen.contains(arm)) continue;
      const size_t begun = unfinished_[arm];
      out.missing.push_back(
          arms_[arm].text() + where + (claims_.withheld.contains(arms_[arm].model) ? ", whose runs are withheld" : "") +
          (begun > 0 ? formatted(", of which {} {} begun and not finished", begun, begun == 1 ? "is" : "are")
                     : std::string()));
    }
    if (!out.missing.empty()) return;
    out.missing.push_back(unmatched_
                              ? formatted("{} with parameters within a factor {} of each other{}",
                                          c_.b.empty() ? arm_text(c_.a) : arm_text(c_.a) + " and " + arm_text(c_.b),
                                          shortest(match_), where)
                              : "the same settings for all arms" + where);
  }

  const Rows& rows_;
  const Claims& claims_;
  const Scale& scale_;
  const Comparison& c_;
  ConfigMap keys_;
  Arm arms_;
  double match_ = 0;
  bool levels_ = false, by_size_ = false, unmatched_ = false;
  std::map<ConfigMap, Members> strata_;
  std::vector<LostRun> lost_;
  std::vector<size_t> unfinished_;  // runs by arm
};

}  // namespace

Figures figures_of(const Rows& rows, const Claims& claims, const Scale& scale, const Comparison& comparison) {
  return Gatherer(rows, claims, scale, comparison).make();
}

}  // namespace sb
