#include "cli/run_names.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "runs/schema.h"

namespace sb::cli {
namespace {

constexpr size_t kLongestValue = 40;
constexpr std::string_view kModel = "model.";

// As one would write it; empty where the run has no such switch.
std::string value_of(const ResolvedConfig& run, const std::string& key) {
  if (const ConfigKey* parameter = find_parameter(key)) {
    const ParameterValue value = parameter->get(run.values);
    const auto* text = std::get_if<std::string>(&value);
    return text ? *text : toml_text(value);
  }
  const auto& switches = run.values.model.switches;
  const auto found = switches.find(key.substr(kModel.size()));
  return found == switches.end() ? "" : found->second;
}

bool derived(const ResolvedConfig& run, const std::string& key) {
  const auto origin = run.origins.find(key);
  return origin != run.origins.end() && origin->second.kind == Origin::Kind::derived;
}

}  // namespace

std::vector<std::string> varying_keys(const std::vector<ResolvedConfig>& runs) {
  std::vector<std::string> keys;
  for (const auto& parameter : parameters()) keys.push_back(parameter.name());
  std::set<std::string> switches;
  for (const auto& run : runs)
    for (const auto& [name, value] : run.values.model.switches) switches.insert(std::string(kModel) + name);
  keys.insert(keys.end(), switches.begin(), switches.end());
  std::erase_if(keys, [&](const std::string& key) {
    if (key == "model.name" || key == "task.number" || key == "run.seed") return true;
    if (std::all_of(runs.begin(), runs.end(), [&](const auto& run) { return derived(run, key); })) return true;
    return std::all_of(runs.begin(), runs.end(),
                       [&](const auto& run) { return value_of(run, key) == value_of(runs.front(), key); });
  });
  return keys;
}

std::string run_name(const ResolvedConfig& run, const std::vector<std::string>& varying) {
  const RunConfig& c = run.values;
  std::string name =
      c.model.name + ", task " + std::to_string(c.task.task.number) + ", seed " + std::to_string(c.run.seed);
  for (const auto& key : varying) {
    const std::string value = value_of(run, key);
    if (!value.empty()) name += ", " + key + "=" + printable(value, kLongestValue);
  }
  return name;
}

}  // namespace sb::cli
