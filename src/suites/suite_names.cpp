
#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "suites/suite.h"

namespace sb {

std::vector<std::string> Suite::merged_lines() const {
  constexpr size_t most_lines = 5, most_names = 8;
  std::vector<std::pair<std::vector<std::string>, size_t>> kinds;  // names, runs whose combinations are called so
  for (const auto& [run, words] : names) {
    const auto known =
        std::find_if(kinds.begin(), kinds.end(), [&words = words](const auto& kind) { return kind.first == words; });
    if (known == kinds.end())
      kinds.emplace_back(words, 1);
    else
      ++known->second;
  }
  const auto counted = [](size_t combinations, const char* more, size_t count) {
    return formatted("{} {}combinations are {}", combinations, more,
                     count == 1 ? "one run" : std::to_string(count) + " runs");
  };
  std::vector<std::string> lines;
  size_t more = 0, more_runs = 0;
  for (const auto& [words, count] : kinds) {
    if (lines.size() >= most_lines) {
      more += count * words.size();
      more_runs += count;
      continue;
    }
    std::string said;
    for (size_t i = 0; i < std::min(words.size(), most_names); ++i)
      said += (i > 0 ? "; " : "") + printable(words[i], 200);
    lines.push_back(counted(count * words.size(), "", count) + ", the same with " + said +
                    (words.size() > most_names ? formatted("; and {} more", words.size() - most_names) : ""));
  }
  if (more > 0) lines.push_back(counted(more, "more ", more_runs));
  return lines;
}

namespace {

// A value that only the run's kind of task has.
std::optional<ConfigValue> own_value(const ResolvedConfig& run, const std::string& name) {
  const auto own = find_own_key(find_task(run.values.task.kind), name);
  if (!own) return std::nullopt;
  const auto& points = run.values.eval.points;
  if (own->section == "eval") return std::vector<int64_t>(points.begin(), points.end());
  return config_value(run.values.task.keys.at(own->key));
}

}  // namespace

std::string value_text(const ResolvedConfig& run, const std::string& key) {
  if (const auto own = own_value(run, key)) {
    const auto* text = std::get_if<std::string>(&*own);
    return text ? *text : toml_text(*own);
  }
  if (const ConfigKey* parameter = find_config_key(key)) {
    const ConfigValue value = parameter->get(run.values);
    const auto* text = std::get_if<std::string>(&value);
    return text ? *text : toml_text(value);
  }
  const auto found = run.values.model.switches.find(key.substr(key.find('.') + 1));
  return found == run.values.model.switches.end() ? "" : found->second;
}

namespace {

// Keys that some run's files give, in the order of the schema, switches after the parameters of [model].
std::vector<std::string> given_keys(const std::vector<ResolvedConfig>& runs) {
  std::set<std::string> given;
  for (const auto& run : runs)
    for (const auto& [name, origin] : run.origins)
      if (origin.kind == Origin::Kind::given) given.insert(name);
  std::vector<std::string> names;
  for (const auto& section : section_names()) {
    for (const auto& p : config_keys())
      if (p.section == section && given.erase(p.name()) > 0) names.push_back(p.name());
    for (const auto& name : given)
      if (name.starts_with(section + ".") && !find_config_key(name)) names.push_back(name);
  }
  return names;
}

bool same_in_all(const std::vector<ResolvedConfig>& runs, const std::string& name) {
  return std::all_of(runs.begin(), runs.end(),
                     [&](const auto& run) { return value_text(run, name) == value_text(runs.front(), name); });
}

}  // namespace

std::vector<std::string> varying_keys(const std::vector<ResolvedConfig>& runs) {
  std::vector<std::string> names = given_keys(runs);
  std::erase_if(names, [&](const std::string& name) { return same_in_all(runs, name); });
  return names;
}

std::string common_toml(const std::vector<ResolvedConfig>& runs) {
  std::string out, section;
  for (const auto& name : given_keys(runs)) {
    if (!same_in_all(runs, name)) continue;
    const std::string key = name.substr(name.find('.') + 1);
    if (name.substr(0, name.find('.')) != section) {
      section = name.substr(0, name.find('.'));
      out += "[" + section + "]\n";
    }
    const ConfigKey* parameter = find_config_key(name);
    const auto& run = runs.front();
    const auto own = own_value(run, name);
    const std::string value = own         ? toml_text(*own)
                              : parameter ? toml_text(parameter->get(run.values))
                                          : toml_quoted(value_text(run, name));
    const auto origin = run.origins.find(name);
    out += key + " = " + value + (origin == run.origins.end() ? "" : "  # " + origin->second.text()) + "\n";
  }
  return out;
}

}  // namespace sb
