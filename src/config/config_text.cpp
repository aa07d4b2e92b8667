// A resolved config as text.
#include <algorithm>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "config/config_file.h"

namespace sb {
namespace {

struct Line {
  std::string name, value;
  bool acts = true;
};

bool has_effect(const ResolvedConfig& config, const ConfigKey& p) {
  const auto density = config.origins.find("grammar.density");  // by default it follows from the depth
  if (p.name() == "grammar.depth" && density != config.origins.end() && density->second.kind == Origin::Kind::derived)
    return !silenced(config.values, p);
  return !silenced(config.values, p) && !config.keys_without_effect.contains(p.name());
}

// Writes a switch, which is stored as text; numbers and truth values without quotes.
std::string switch_toml(const std::string& text) {
  const bool bare = text == "true" || text == "false" || parse_integer(text) || parse_finite(text);
  return bare ? text : toml_quoted(text);
}

// Whether the key belongs to another kind of task and would be rejected.
bool foreign(const ResolvedConfig& config, const ConfigKey& p) {
  return !p.task_kind.empty() && p.task_kind != config.values.task.kind;
}

// Whether the key was added after the first runs and has its default. Only `config show` writes such a key, so that the
// files of other runs do not change.
bool is_unused_young_key(const ResolvedConfig& config, const std::string& name) {
  const TrainSection& train = config.values.train;
  return (name == "train.schedule" && train.schedule.empty()) ||
         (name == "train.position_stretch" && train.position_stretch == 1);
}

std::vector<std::pair<ConfigKey, ConfigValue>> own_values(const ResolvedConfig& config) {
  std::vector<std::pair<ConfigKey, ConfigValue>> out;
  const TaskRow& row = find_task(config.values.task.kind);
  if (row.name == kGapsKind) return out;
  for (const TaskKey& key : row.keys)
    out.emplace_back(own_key(key), config_value(config.values.task.keys.at(key.name)));
  const auto& points = config.values.eval.points;
  if (row.axis) out.emplace_back(own_key(*row.axis), std::vector<int64_t>(points.begin(), points.end()));
  return out;
}

std::vector<Line> lines_of(const ResolvedConfig& config, const std::string& section, const std::string& automaton,
                           bool origins) {
  std::vector<Line> lines;
  for (const auto& p : config_keys()) {
    if (p.section != section || foreign(config, p)) continue;
    if (p.name() == "task.kind" && config.values.task.kind == kGapsKind && !origins) continue;
    if (is_unused_young_key(config, p.name()) && !origins) continue;
    const bool replaced =
        p.name() == "grammar.automaton" && !config.values.grammar.automaton.empty() && !automaton.empty();
    lines.push_back(
        {p.key, replaced ? toml_quoted(automaton) : toml_text(p, p.get(config.values)), has_effect(config, p)});
  }
  for (const auto& [key, value] : own_values(config))
    if (key.section == section) lines.push_back({key.key, toml_text(value)});
  if (section == "model")
    for (const auto& [key, text] : config.values.model.switches) {
      const bool plain = std::all_of(key.begin(), key.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
      });
      lines.push_back({plain && !key.empty() ? key : toml_quoted(key), switch_toml(text)});
    }
  return lines;
}

std::string default_text(const std::string& kind, const ConfigKey& own) {
  const TaskKey* key = own.section == "task" ? find_task(kind).find(own.key) : nullptr;
  return key ? toml_text(config_value(key->initial)) : "[]";
}

}  // namespace

std::string Origin::text() const {
  switch (kind) {
    case Kind::given:
      return place.text();
    case Kind::derived:
      return "derived from " + cause;
    case Kind::builtin:
      break;
  }
  return "default";
}

std::string config_toml(const ResolvedConfig& config, bool origins, const std::string& automaton) {
  std::string out = "# run " + config.run_id + "\n";
  for (const auto& section : section_names()) {
    out += "\n[" + section + "]\n";
    const auto lines = lines_of(config, section, automaton, origins);
    size_t widest = 0;
    for (const auto& line : lines) widest = std::max(widest, line.name.size() + line.value.size());
    for (const auto& line : lines) {
      // With an automaton, [grammar] keys that it replaces are not written.
      const bool left_out = section == "grammar" && !line.acts;
      if (left_out && !origins) continue;
      out += (left_out ? "# " : "") + line.name + " = " + line.value;
      const auto origin = config.origins.find(section + "." + line.name);
      if (origins && origin != config.origins.end())
        out += std::string(widest - line.name.size() - line.value.size() + 2, ' ') + "# " + origin->second.text() +
               (line.acts ? "" : ", has no effect here");
      out += "\n";
    }
  }
  return out;
}

std::string config_json(const ResolvedConfig& config) {
  Json values;
  for (const auto& section : section_names()) {
    Json& members = values[section] = Json::object();
    for (const auto& p : config_keys())
      if (p.section == section && !foreign(config, p) && !is_unused_young_key(config, p.name()))
        members[p.key] = std::visit([](const auto& v) { return Json(v); }, p.get(config.values));
    for (const auto& [key, value] : own_values(config))
      if (key.section == section) members[key.key] = std::visit([](const auto& v) { return Json(v); }, value);
    if (section == "model")
      for (const auto& [key, text] : config.values.model.switches) members[key] = text;
  }
  Json origins = Json::object();
  for (const auto& [name, origin] : config.origins) {
    if (is_unused_young_key(config, name)) continue;
    const ConfigKey* p = find_config_key(name);
    origins[name] = origin.text() + (p != nullptr && !has_effect(config, *p) ? ", has no effect here" : "");
  }
  return json_document({{"run_id", config.run_id}, {"values", std::move(values)}, {"origins", std::move(origins)}}, 2);
}

std::string parameter_table(const ModelRules& rules) {
  const RunConfig defaults;
  TextTable table({"parameter", "default", "range", "meaning"}, "llll");
  for (const auto& p : config_keys()) {
    const bool unset = p.name() == "grammar.density";
    table.row({p.name(), unset ? "unset" : toml_text(p, p.get(defaults)), p.range(), p.meaning});
  }
  TextTable own({"key", "task.kind", "default", "range", "meaning"}, "lllll");
  const ConfigKey& length = *find_config_key("task.length");
  for (const TaskRow& row : task_registry())
    if (row.name != kGapsKind)
      own.row({length.name(), row.name, std::to_string(row.length), length.range(), row.length_meaning});
  for (const auto& [kind, p] : own_keys()) own.row({p.name(), kind, default_text(kind, p), p.range(), p.meaning});
  std::string tables = table.text() + "\n" + own.text();
  if (rules.table.empty()) return tables;
  TextTable switches({"switch", "model", "default", "range", "meaning"}, "lllll");
  for (const auto& s : rules.table) switches.row({"model." + s.key, s.model, s.initial, s.range, s.meaning});
  return tables + "\n" + switches.text();
}

std::string parameter_json(const ModelRules& rules) {
  const RunConfig defaults;
  Json out = Json::array();
  for (const auto& p : config_keys())
    out.push_back({{"name", p.name()},
                   {"default", toml_text(p, p.get(defaults))},
                   {"range", p.range()},
                   {"meaning", p.meaning},
                   {"identifies", p.identifies}});
  for (const auto& [kind, p] : own_keys())
    out.push_back({{"name", p.name()},
                   {"task_kind", kind},
                   {"default", default_text(kind, p)},
                   {"range", p.range()},
                   {"meaning", p.meaning},
                   {"identifies", true}});
  for (const auto& s : rules.table)
    out.push_back({{"name", "model." + s.key},
                   {"model", s.model},
                   {"default", s.initial},
                   {"range", s.range},
                   {"meaning", s.meaning},
                   {"identifies", true}});
  return json_document(out);
}

}  // namespace sb
