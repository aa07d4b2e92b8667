#include "findings/arms.h"

#include <algorithm>
#include <set>

#include "base/number.h"
#include "findings/protocol.h"

namespace sb {
namespace {

std::string switch_plain(const std::string& json) {
  const std::string text = plain_value(json);
  return text == "true" ? "on" : text == "false" ? "off" : text;
}

bool in_band(const Result& result, const Scale& scale, bool by_size) {
  const auto params = static_cast<double>(result.params);
  return params >= (by_size ? scale.least_size : scale.least_params) &&
         params <= (by_size ? scale.most_size : scale.most_params);
}

// The keys that determine the number of parameters.
ConfigMap network_of(const Group& group) {
  ConfigMap out;
  for (const auto& [key, value] : group.config)
    if ((key.starts_with("model.") && key != "model.dropout") || key == "grammar.vocab" ||
        key == "grammar.ambiguities" || key == "grammar.depth" || key == "grammar.automaton" || key == "task.objective")
      out[key] = value;
  return out;
}

}  // namespace

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

const Result& some_result(const Rows& rows, const Group& group) {
  for (const auto& candidate : group.candidates)
    for (const auto* runs : {&candidate.runs, &candidate.diverged})
      if (!runs->empty()) return rows.runs[runs->front()].result;
  return rows.runs.front().result;  // a group has a run
}

int64_t params_of(const Rows& rows, size_t group) {
  return some_result(rows, rows.groups[group]).params;
}

bool meets(const ConfigMap& config, const ConfigMap& keys, const std::vector<std::string>& free) {
  return std::all_of(keys.begin(), keys.end(), [&](const auto& entry) {
    return contains(free, entry.first) || same_value(key_of(config, entry.first), entry.second);
  });
}

namespace {

// The keys of a scale describe runs of gaps. Runs of other kinds belong to a scale by their parameters.
bool meets_scale(const Group& group, const Scale& scale, const std::vector<std::string>& free) {
  return !parse_integer(group.value("task.number")) || meets(group.config, scale.keys, free);
}

}  // namespace

bool of_scale(const Rows& rows, const Group& group, const Scale& scale, const std::vector<std::string>& free,
              bool by_size) {
  return meets_scale(group, scale, free) && in_band(some_result(rows, group), scale, by_size);
}

bool may_be_of_scale(const Rows& rows, const Group& group, const Scale& scale, const std::vector<std::string>& free,
                     bool by_size) {
  if (!meets_scale(group, scale, free)) return false;
  const ConfigMap network = network_of(group);
  const auto same = std::find_if(rows.groups.begin(), rows.groups.end(),
                                 [&](const Group& other) { return network_of(other) == network; });
  return same == rows.groups.end() || in_band(some_result(rows, *same), scale, by_size);
}

bool fits(const Group& group, const ArmModel& arm, const ConfigMap& named) {
  if (group.model() != arm.model || !meets(group.config, arm.keys, {})) return false;
  for (const auto& [key, usual] : usual_training())
    if (!arm.keys.contains(key) && !named.contains(key) && key_of(group.config, key) != usual) return false;
  // Sizes, and settings that the corrected protocol chooses per model.
  static const std::set<std::string> free = {"heads", "d_state", "conv"};
  std::set<std::string> found;
  for (const auto& [key, json] : group.config) {
    if (!key.starts_with("model.switch ")) continue;
    const std::string name = key.substr(13);
    const auto wanted = arm.switches.find(name);
    if (wanted != arm.switches.end()) {
      found.insert(name);
      if (!same_value(switch_plain(json), wanted->second)) return false;
    } else if (!free.contains(name) && !is_paper_switch(arm.model, name, json).value_or(true)) {
      return false;
    }
  }
  // A switch that the config does not have counts as having the paper's value.
  for (const auto& [name, value] : arm.switches)
    if (!found.contains(name) && is_paper_switch(arm.model, name, value) != true) return false;
  return true;
}

}  // namespace sb
