#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/arm_values.h"
#include "findings/arms.h"
#include "findings/gatherer.h"

namespace sb {

// Grammars that some model has at some level and another model or level lacks, and why. Diverged and collapsed runs are
// not missing: they are named as runs to repeat.
void Gatherer::name_lacking(Figures& out, const std::vector<GroupsByLevel>& groups,
                            const std::vector<LevelValues>& values) const {
  constexpr size_t most_named = 3;
  std::set<Unit> all = out.a.too_few;
  all.insert(out.b.too_few.begin(), out.b.too_few.end());
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

// Lines "on grammar seeds 1, 2 …" for the grammars that one model lacks at one level, one line per reason.
std::vector<std::string> Gatherer::lacked(size_t group, const std::map<Unit, double>& has,
                                          const std::set<Unit>& all) const {
  std::map<std::string, std::vector<std::string>> seeds;
  const auto compared = candidates_.find(group);
  const auto candidate = compared == candidates_.end() ? std::nullopt : std::optional(compared->second);
  for (const auto& unit : all)
    if (!has.contains(unit))
      if (const auto how = how_lacking(rows_, group, unit, c_, candidate)) seeds[*how].push_back(grammar_text(unit));
  std::vector<std::string> out;
  for (const auto& [how, units] : seeds)
    out.push_back(formatted("on grammar seed{} {}{}", units.size() == 1 ? "" : "s", joined(units, ", "), how));
  return out;
}

// "GLA, Mamba, Mamba2 and S4 (task 1)": each model once, even if it lacks several levels.
std::string Gatherer::places_text(const std::vector<size_t>& groups) const {
  std::vector<std::string> models;
  for (const size_t group : groups)
    if (const std::string model = arm_name(group); !contains(models, model)) models.push_back(model);
  const std::string last = models.back();
  models.pop_back();
  return (models.empty() ? last : joined(models, ", ") + " and " + last) + formatted(" ({})", c_.task_text()) +
         (groups.size() > models.size() + 1
              ? formatted(", {} of their sizes of {} together,", groups.size(), by_size_ ? "network" : "grammar")
              : "");
}

// Where a second level could be run, for a slope or order that has only one.
std::string Gatherer::second_level() const {
  if (by_size_) return "at a second size of the networks";
  if (c_.over != "topological_entropy") return "at a second value of " + c_.over;
  std::vector<std::string> keys;
  for (const auto& key : c_.free) keys.push_back(last_part(key));
  return "on grammars of a second size (another " + joined(keys, ", ") + ")";
}

std::string Gatherer::place_text(size_t group) const {
  if (by_size_)
    return group_text(group) + formatted(" of {} parameters", grouped(static_cast<uint64_t>(params_of(rows_, group))));
  return levels_ && c_.from == 0 ? group_text(group) + level_text(group) : group_text(group);
}

// Text that identifies the level of the group: the key of the axis, or all free keys.
std::string Gatherer::level_text(size_t group) const {
  const std::string value = rows_.groups[group].value(c_.over);
  if (!value.empty()) return formatted(" at {} {}", c_.over, plain_value(value));
  std::vector<std::string> parts;
  for (const auto& key : c_.free) parts.push_back(last_part(key) + " " + plain_value(rows_.groups[group].value(key)));
  return " with grammars of " + joined(parts, ", ") + ",";
}

std::string Gatherer::arm_name(size_t number) const {
  for (const auto& arm : arms_)
    if (fits(rows_.groups[number], arm, named_)) return arm.text();
  return model_title(rows_.groups[number].model());
}

std::string Gatherer::group_text(size_t number) const {
  const std::string task = c_.from > 0 ? "task " + rows_.groups[number].value("task.number") : c_.task_text();
  return arm_name(number) + formatted(" ({})", task);
}

void Gatherer::name_missing_arms(Figures& out) const {
  std::map<size_t, std::set<std::string>> tasks;  // of each arm with runs
  for (const auto& [key, members] : strata_)
    for (size_t arm = 0; arm < members.size(); ++arm)
      for (const auto& place : members[arm]) tasks[arm].insert(rows_.groups[place.group].value("task.number"));
  const std::string where = formatted(" at scale {}, {} protocol", scale_.name, protocol_);
  for (size_t arm = 0; arm < arms_.size(); ++arm) {
    const size_t begun = unfinished_[arm];
    for (const int task : {c_.from, c_.task}) {
      if (task == 0 || (c_.from > 0 ? tasks[arm].contains(std::to_string(task)) : !tasks[arm].empty())) continue;
      out.missing.push_back(
          formatted("{} on {}", arms_[arm].text(), c_.from > 0 ? formatted("task {}", task) : c_.place_text()) + where +
          (begun > 0 ? formatted(", of which {} {} begun and not finished", begun, begun == 1 ? "is" : "are")
                     : std::string()));
    }
  }
  if (!out.missing.empty()) return;
  const std::string names = c_.b.empty() ? arm_text(c_.a) : arm_text(c_.a) + " and " + arm_text(c_.b);
  out.missing.push_back((unmatched_
                             ? formatted("{} with parameters within a factor {} of each other", names, shortest(match_))
                             : "the same settings for all arms") +
                        formatted(" on {}", c_.place_text()) + where);
}

}  // namespace sb
