#include "findings/population.h"

#include <algorithm>

#include "findings/arms.h"
#include "findings/choices.h"
#include "findings/gatherer.h"
#include "findings/protocol.h"

namespace sb {

Gatherer::Gatherer(const Rows& rows, const Claims& claims, const Scale& scale, std::string protocol,
                   const Comparison& comparison)
    : rows_(rows), claims_(claims), scale_(scale), protocol_(std::move(protocol)), c_(comparison) {
  levels_ = c_.statistic == Statistic::slope || c_.statistic == Statistic::rank_correlation ||
            (c_.statistic == Statistic::drop && c_.kind.empty());
  by_size_ = c_.over == "params";
  match_ = c_.match.value_or(scale_.match);
  named_ = c_.keys_at(scale_.name);
  for (const auto& [key, value] : named_) scale_.keys.erase(key);
  for (const int task : {c_.task, c_.from}) {
    if (task == 0) continue;
    if (const auto it = claims.task_keys.find(task); it != claims.task_keys.end()) keys_[task] = it->second;
    for (const auto& [key, value] : named_) keys_[task][key] = value;
  }
  arms_ = c_.a;
  arms_.insert(arms_.end(), c_.b.begin(), c_.b.end());
  if (!c_.kind.empty()) require_kind();
  own_keys_ = keys_beside_protocol(c_);
}

// Runs of a kind have the keys of the comparison and of its claim. All others of the kind have their defaults, unless
// the arms name them or their content is a file's.
void Gatherer::require_kind() {
  const TaskRow& row = find_task(c_.kind);
  kind_defaults_ = {{"task.length", std::to_string(row.length)}};
  for (const TaskKey& key : row.keys)
    if (!key.file) kind_defaults_["task." + key.name] = json_text(config_value(key.initial));
  kind_keys_ = named_;
  kind_keys_.insert(kind_defaults_.begin(), kind_defaults_.end());
  for (const auto& arm : arms_)
    for (const auto& [key, value] : arm.keys) kind_keys_.erase(key);
}

Figures Gatherer::make() {
  place_groups();
  place_absent();
  Figures best;
  size_t complete = 0;
  for (const auto& [key, members] : strata_) {
    Figures one = of_stratum(members);
    if (!one.found) continue;
    ++complete;
    const auto rank = [](const Figures& f) { return std::pair(f.effects.size(), f.updates); };
    if (!best.found || rank(one) > rank(best)) best = std::move(one);
  }
  best.other_strata = complete > 0 ? complete - 1 : 0;
  best.lost = std::move(lost_);
  if (!best.found) {
    best.partly = !strata_.empty();
    name_missing_arms(best);
  }
  return best;
}

void Gatherer::place_groups() {
  for (size_t g = 0; g < rows_.groups.size(); ++g) {
    const Group& group = rows_.groups[g];
    if (!of_task(group) || !of_scale(rows_, group, scale_, c_.free, by_size_) || !is_reported(group) ||
        protocol_of(rows_, group, own_keys_) != protocol_)
      continue;
    for (size_t arm = 0; arm < arms_.size(); ++arm)
      if (fits(group, arms_[arm], named_)) {
        auto& members = strata_[stratum_of(group)];
        members.resize(arms_.size());
        members[arm].push_back({g, level_of(g)});
        for (const auto& candidate : group.candidates)
          for (const size_t run : candidate.diverged)
            if (!is_choice(rows_, claims_, run)) lost_.push_back(diverged_run(rows_, run));
      }
  }
}

// Assigns runs without a figure to arms. An unfinished run has no known number of parameters; runs of the same network
// provide it, if there are any.
void Gatherer::place_absent() {
  unfinished_.assign(arms_.size(), 0);
  for (const auto& run : rows_.absent) {
    if (run.config.empty()) continue;
    const Group group{run.config, {}, std::nullopt, {}};
    if (!of_task(group) || !may_be_of_scale(rows_, group, scale_, c_.free, by_size_) ||
        protocol_of(run, own_keys_) != protocol_)
      continue;
    for (size_t arm = 0; arm < arms_.size(); ++arm) {
      if (!fits(group, arms_[arm], named_)) continue;
      lost_.push_back(lost_run(run));
      if (run.why == MissingRun::Why::unfinished) ++unfinished_[arm];
    }
  }
}

bool Gatherer::of_task(const Group& group) const {
  const std::string task = group.value("task.number");
  if (!c_.kind.empty()) {
    ConfigMap config = group.config;
    config.insert(kind_defaults_.begin(), kind_defaults_.end());  // of keys that are younger than the run
    return plain_value(task) == c_.kind && meets(config, kind_keys_, c_.free);
  }
  for (const int number : {c_.task, c_.from}) {
    if (number == 0 || (task != std::to_string(number) && !(number == 4 && task == "2"))) continue;
    const auto keys = keys_.find(number);
    if (keys == keys_.end() || meets(group.config, keys->second, c_.free)) return true;
  }
  return false;
}

// Whether some run of the group is not on the grammar of the choices.
bool Gatherer::is_reported(const Group& group) const {
  for (const auto& candidate : group.candidates)
    for (const auto* runs : {&candidate.runs, &candidate.diverged})
      for (const size_t run : *runs)
        if (!is_choice(rows_, claims_, run)) return true;
  return false;
}

ConfigMap Gatherer::stratum_of(const Group& group) const {
  ConfigMap out = group.config;
  const auto& axis = find_task(c_.kind.empty() ? kGapsKind : c_.kind).axis;
  const std::string points = axis ? "eval." + axis->key : "";
  std::erase_if(out, [&](const auto& entry) {
    const std::string& key = entry.first;
    const bool of_protocol = (key.starts_with("model.") && key != "model.layers") || key == "quirks" ||
                             key == "train.dropout_until" || own_keys_.contains(key);
    const bool of_task = c_.from > 0 && (key.starts_with("task.") || key.starts_with("eval."));
    return of_protocol || of_task || key == "run.label" || key == "train.accumulate" || key == "eval.every" ||
           contains(c_.free, key) || (c_.gaps.empty() && (key == points || key == "eval.grid_samples"));
  });
  return out;
}

Level Gatherer::level_of(size_t group) const {
  if (by_size_) return {std::to_string(params_of(rows_, group))};
  if (c_.from > 0) return {rows_.groups[group].value("task.number")};
  Level out;
  if (levels_)
    for (const auto& key : c_.free) out.push_back(rows_.groups[group].value(key));
  return out;
}

// The groups of an arm by level; at each level, the largest network first.
std::map<Level, std::vector<size_t>> Gatherer::by_level(const std::vector<Place>& places) const {
  std::map<Level, std::vector<size_t>> out;
  for (const auto& place : places) out[place.level].push_back(place.group);
  for (auto& [level, groups] : out)
    std::stable_sort(groups.begin(), groups.end(), [&](size_t x, size_t y) {
      const auto rank = [&](size_t g) { return std::pair(params_of(rows_, g), rows_.groups[g].averaged.size()); };
      return rank(x) > rank(y);
    });
  return out;
}

Figures Gatherer::of_stratum(const Members& members) {
  Figures out;
  for (const auto& places : members)
    if (places.empty()) return out;
  out.found = true;
  const Result& result = some_result(rows_, rows_.groups[members.front().front().group]);
  out.updates = result.updates;
  out.states = result.states;
  out.layers = parse_integer(rows_.groups[members.front().front().group].value("model.layers")).value_or(0);
  for (const auto& places : members)
    for (const Place& place : places)
      if (parse_integer(rows_.groups[place.group].value("model.layers")) != out.layers) out.layers = 0;
  if (!c_.b.empty()) {
    two_arms(out, members);
  } else {
    one_arm(out, members);
  }
  return out;
}

Figures figures_of(const Rows& rows, const Claims& claims, const Scale& scale, const std::string& protocol,
                   const Comparison& comparison) {
  return Gatherer(rows, claims, scale, protocol, comparison).make();
}

}  // namespace sb
