// Which runs of a suite are worked on, and in which order.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "config/toml_tree.h"
#include "store/result.h"
#include "suites/suite.h"
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
  int depth = 0;  // commas inside brackets separate numbers of one list value
  for (const char c : text.substr(equals + 1)) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      wanted.any_of.emplace_back();
    } else {
      wanted.any_of.back() += c;
    }
  }
  return wanted;
}

// One spelling for each value, as for --set: 1e-3 is 0.001, [8,4] is [4, 8]. Text needs no quotes. Anything that is not
// a value of the key stays unchanged.
std::string spelled_as_value(const std::string& key, const std::string& text) {
  const ConfigKey* parameter = find_config_key(key);
  try {
    return condition_text(key, parse_assigned(text, parameter, {}));
  } catch (const Error&) {
    return parameter && parameter->kind == ConfigKey::Kind::text ? toml_quoted(text) : text;
  }
}

const std::string id_key = "run.id";  // in no file: derived from all other keys

std::string value_spelled(const ResolvedConfig& run, const std::string& key) {
  if (key == id_key) return run.run_id;
  const ConfigKey* parameter = find_config_key(key);
  return parameter ? toml_text(parameter->get(run.values)) : value_text(run, key);
}

std::vector<std::string> keys_of(const Suite& suite) {
  std::set<std::string> keys;
  for (const auto& run : suite.runs)
    for (const auto& [key, origin] : run.origins) keys.insert(key);
  return {keys.begin(), keys.end()};
}

}  // namespace

void keep_where(Suite& suite, const std::vector<std::string>& conditions, const std::string& where) {
  std::vector<bool> kept(suite.runs.size(), true);
  for (const auto& text : conditions) {
    const Wanted wanted = parse_condition(text, where);
    auto keys = keys_of(suite);
    keys.insert(std::lower_bound(keys.begin(), keys.end(), id_key), id_key);
    if (!std::binary_search(keys.begin(), keys.end(), wanted.key))
      throw bad_input(where, "no run has the key '" + printable(wanted.key) + "'" + did_you_mean(wanted.key, keys));
    std::set<std::string> any_of, spelled, values;
    const auto spell = [&](const std::string& value) {
      return wanted.key == id_key ? value : spelled_as_value(wanted.key, value);
    };
    for (const auto& value : wanted.any_of) any_of.insert(spell(value));
    for (size_t i = 0; i < suite.runs.size(); ++i) {
      const std::string value = value_spelled(suite.runs[i], wanted.key);
      spelled.insert(value);
      values.insert(wanted.key == id_key ? value : value_text(suite.runs[i], wanted.key));
      if (!any_of.contains(value)) kept[i] = false;
    }
    for (const auto& value : wanted.any_of)
      if (!spelled.contains(spell(value)))
        throw bad_input(where, "no run has " + printable(wanted.key) + " = '" + printable(value) + "', expected " +
                                   join_some(nearest_first(value, {values.begin(), values.end()}), kMaxNamed));
  }
  if (std::find(kept.begin(), kept.end(), true) == kept.end())
    throw bad_input(where, "no run of the suite matches all conditions");
  keep_runs(suite, kept);
}

void keep_runs(Suite& suite, const std::vector<bool>& kept) {
  Suite out;
  std::set<std::pair<std::string, int64_t>> networks;
  for (size_t i = 0; i < suite.runs.size(); ++i) {
    if (!kept[i]) continue;
    if (const auto names = suite.names.find(i); names != suite.names.end())
      out.names[out.runs.size()] = std::move(names->second);
    networks.emplace(suite.runs[i].values.model.name, suite.runs[i].values.model.width);
    out.runs.push_back(std::move(suite.runs[i]));
  }
  suite.runs = std::move(out.runs);
  suite.names = std::move(out.names);
  std::erase_if(suite.matched, [&](const auto& each) { return !networks.contains({each.model, each.width}); });
}

std::vector<size_t> order_of_work(const Suite& suite) {
  static const std::set<std::string> seeds = {"grammar.seed", "train.seed", "train.order_seed"};
  std::map<std::map<std::string, std::string>, size_t> count;  // number of earlier runs that differ only in seeds
  std::vector<std::pair<size_t, size_t>> rounds;
  for (size_t i = 0; i < suite.runs.size(); ++i) {
    auto config = config_map(suite.runs[i].canonical);
    for (const auto& seed : seeds) config.erase(seed);
    rounds.emplace_back(count[std::move(config)]++, i);
  }
  std::sort(rounds.begin(), rounds.end());
  std::vector<size_t> order;
  for (const auto& [round, place] : rounds) order.push_back(place);
  return order;
}

}  // namespace sb
