#include "suites/conditions.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "config/toml_tree.h"
#include "suites/suite_file.h"

namespace sb {
namespace {

constexpr size_t kMaxNamed = 6;  // values in a message

struct Wanted {
  std::string key;
  std::vector<std::string> any_of;
};

Wanted parse_condition(const std::string& text, const std::string& where) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw bad_input(where, "expected SECTION.KEY=VALUE or several values with commas, got '" + printable(text) + "'");
  Wanted wanted{text.substr(0, equals), {""}};
  int depth = 0;  // commas inside brackets belong to one value
  for (const char c : text.substr(equals + 1)) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      wanted.any_of.emplace_back();
    } else {
      wanted.any_of.back() += c;
    }
  }
  for (const auto& value : wanted.any_of)
    if (value.empty())
      throw bad_input(where, "expected a value on both sides of a comma, got '" + printable(text) + "'");
  return wanted;
}

// One spelling for each value, as for --set: 1e-3 is 0.001, [8,4] is [4, 8]. Text needs no quotes. Anything that is not
// a value of the key stays unchanged.
std::string spelled_as_value(const std::string& key, std::string text) {
  if (key == "run.id") return text;  // a digest, even if it reads like a number
  const ConfigKey* parameter = find_config_key(key);
  try {
    const std::string spelled = condition_text(key, parse_assigned(text, parameter, {}));
    if (parameter || !key.starts_with("model.")) return spelled;
    return spelled == "true" ? "on" : spelled == "false" ? "off" : spelled;  // both spell a switch
  } catch (const Error&) {
    if (parameter && parameter->kind == ConfigKey::Kind::text) return toml_quoted(text);
    if (text.starts_with('[')) std::erase(text, ' ');  // a list that only one kind of task has
    return text;
  }
}

}  // namespace

std::vector<bool> runs_where(const ConditionedRuns& runs, const std::vector<std::string>& conditions,
                             const std::string& where) {
  std::vector<bool> kept(runs.count, true);
  for (const auto& text : conditions) {
    const Wanted wanted = parse_condition(text, where);
    if (std::find(runs.keys.begin(), runs.keys.end(), wanted.key) == runs.keys.end())
      throw bad_input(where,
                      "no run has the key '" + printable(wanted.key) + "'" + did_you_mean(wanted.key, runs.keys));
    std::map<std::string, std::vector<size_t>> having;  // runs by value, so that each value is parsed once
    for (size_t i = 0; i < runs.count; ++i) having[runs.value(i, wanted.key)].push_back(i);
    std::map<std::string, bool> asked;  // by spelling: whether some run has the value
    for (const auto& value : wanted.any_of) asked[spelled_as_value(wanted.key, value)] = false;
    std::vector<std::string> values;
    for (const auto& [value, which] : having) {
      if (!value.empty()) values.push_back(value);
      if (const auto found = asked.find(spelled_as_value(wanted.key, value)); found != asked.end())
        found->second = true;
      else
        for (const size_t i : which) kept[i] = false;
    }
    for (const auto& value : wanted.any_of)
      if (!asked.at(spelled_as_value(wanted.key, value)))
        throw bad_input(where, "no run has " + printable(wanted.key) + " = '" + printable(value) + "', expected " +
                                   join_some(nearest_first(value, values), kMaxNamed));
  }
  if (std::find(kept.begin(), kept.end(), true) == kept.end()) throw bad_input(where, "no run matches all conditions");
  return kept;
}

}  // namespace sb
