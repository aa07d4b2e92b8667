// A resolved config as text.
#include <algorithm>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "runs/config_file.h"

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

// Switches are kept as text; numbers and truth values are written bare, as people write them.
std::string switch_toml(const std::string& text) {
  const bool bare = text == "true" || text == "false" || parse_integer(text) || parse_finite(text);
  return bare ? text : toml_quoted(text);
}

std::vector<Line> lines_of(const ResolvedConfig& config, const std::string& section, const std::string& automaton) {
  std::vector<Line> lines;
  for (const auto& p : config_keys()) {
    if (p.section != section) continue;
    const bool replaced =
        p.name() == "grammar.automaton" && !config.values.grammar.automaton.empty() && !automaton.empty();
    lines.push_back(
        {p.key, replaced ? toml_quoted(automaton) : toml_text(p.get(config.values)), has_effect(config, p)});
  }
  if (section == "model")
    for (const auto& [key, text] : config.values.model.switches) {
      const bool plain = std::all_of(key.begin(), key.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
      });
      lines.push_back({plain && !key.empty() ? key : toml_quoted(key), switch_toml(text)});
    }
  return lines;
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
    const auto lines = lines_of(config, section, automaton);
    size_t widest = 0;
    for (const auto& line : lines) widest = std::max(widest, line.name.size() + line.value.size());
    for (const auto& line : lines) {
      // A file that gives an automaton gives no grammar.
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
      if (p.section == section)
        members[p.key] = std::visit([](const auto& v) { return Json(v); }, p.get(config.values));
    if (section == "model")
      for (const auto& [key, text] : config.values.model.switches) members[key] = text;
  }
  Json origins = Json::object();
  for (const auto& [name, origin] : config.origins) {
    const ConfigKey* p = find_config_key(name);
    origins[name] = origin.text() + (p != nullptr && !has_effect(config, *p) ? ", has no effect here" : "");
  }
  return json_document({{"run_id", config.run_id}, {"values", std::move(values)}, {"origins", std::move(origins)}}, 2);
}

std::string parameter_table(const ModelRules& rules) {
  using Align = TextTable::Align;
  const RunConfig defaults;
  TextTable table({"parameter", "default", "range", "meaning"}, {Align::left, Align::left, Align::left, Align::left});
  for (const auto& p : config_keys()) {
    const bool unset = p.name() == "grammar.density";
    table.row({p.name(), unset ? "unset" : toml_text(p.get(defaults)), p.range(), p.meaning});
  }
  if (rules.table.empty()) return table.text();
  TextTable switches({"switch", "model", "default", "range", "meaning"},
                     {Align::left, Align::left, Align::left, Align::left, Align::left});
  for (const auto& s : rules.table) switches.row({"model." + s.key, s.model, s.initial, s.range, s.meaning});
  return table.text() + "\n" + switches.text();
}

std::string parameter_json(const ModelRules& rules) {
  const RunConfig defaults;
  Json out = Json::array();
  for (const auto& p : config_keys())
    out.push_back({{"name", p.name()},
                   {"default", toml_text(p.get(defaults))},
                   {"range", p.range()},
                   {"meaning", p.meaning},
                   {"identifies", p.identifies}});
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
