#include "report/table_choice.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "config/schema.h"
#include "report/folder.h"
#include "report/names.h"
#include "suites/conditions.h"

namespace sb {
namespace {

using Runs = std::vector<std::shared_ptr<const ReadRun>>;

const ConfigMap& config_of(const ReadRun& read) {
  return read.run ? read.run->result.config : read.config;
}

std::string shown(const ConfigMap& config, const std::string& key) {
  const auto found = config.find(key);
  return found == config.end() ? "" : plain_value(found->second);
}

// The value of a key of a config file; of a key that the run id leaves out, its default.
std::string value_of(const ReadRun& read, const std::string& key) {
  const ConfigMap& config = config_of(read);
  if (key == "run.id") return read.run ? read.run->result.run_id : folder_name(read.report.folder);
  if (key == "run.seed") {
    const std::string grammar = shown(config, "grammar.seed"), training = shown(config, "train.seed");
    return grammar.empty() || grammar == training ? training : "";
  }
  const std::string value = shown(config, config_key(key));
  const ConfigKey* parameter = value.empty() ? find_config_key(key) : nullptr;
  if (!parameter || parameter->section == "run") return value;
  const ConfigValue initial = parameter->get(RunConfig{});
  const auto* text = std::get_if<std::string>(&initial);
  return text ? *text : toml_text(initial);
}

std::vector<std::string> keys_of(const Runs& runs) {
  std::set<std::string> keys = {"run.id", "run.seed"};
  for (const auto& read : runs)
    for (const auto& [key, value] : config_of(*read)) keys.insert(axis_name(key));
  for (const auto& parameter : config_keys())
    if (parameter.section != "run") keys.insert(parameter.name());
  return {keys.begin(), keys.end()};
}

void keep_scale(Runs& runs, const std::string& scale) {
  std::set<std::string> names;
  for (const auto& read : runs) names.insert(scale_name(config_of(*read)));
  names.erase("");
  if (!names.contains(scale))
    throw bad_input("table --scale",
                    formatted("no run has the scale '{}'{}", printable(scale),
                              names.empty() ? "" : ", expected " + join_or({names.begin(), names.end()})));
  std::erase_if(runs, [&](const auto& read) { return scale_name(config_of(*read)) != scale; });
}

}  // namespace

void keep_chosen(Runs& runs, const TableChoice& choice) {
  const auto first =
      std::stable_partition(runs.begin(), runs.end(), [](const auto& read) { return config_of(*read).empty(); });
  Runs known(first, runs.end());
  if (known.empty()) return;
  runs.erase(first, runs.end());
  if (!choice.scale.empty()) keep_scale(known, choice.scale);
  std::vector<bool> kept(known.size(), true);
  if (!choice.where.empty())
    kept = runs_where(
        {known.size(), keys_of(known), [&](size_t run, const std::string& key) { return value_of(*known[run], key); }},
        choice.where, "table --where");
  for (size_t i = 0; i < known.size(); ++i)
    if (kept[i]) runs.push_back(known[i]);
}

}  // namespace sb
