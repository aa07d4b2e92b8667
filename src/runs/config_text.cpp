// A resolved config as text.
#include <algorithm>

#include "base/json_writer.h"
#include "base/number.h"
#include "base/text.h"
#include "runs/config_file.h"

namespace sb {
namespace {

struct Line {
  std::string name, value;
  bool acts = true;
};

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
        {p.key, replaced ? toml_quoted(automaton) : toml_text(p.get(config.values)), !silenced(config.values, p)});
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
  std::string out = "{\n  \"run_id\": " + json_quoted(config.run_id) + ",\n  \"values\": {";
  bool first_section = true;
  for (const auto& section : section_names()) {
    out += std::string(first_section ? "" : ",") + "\n    " + json_quoted(section) + ": {";
    first_section = false;
    bool first = true;
    const auto member = [&](const std::string& key, const std::string& text) {
      out += std::string(first ? "" : ", ") + json_quoted(key) + ": " + text;
      first = false;
    };
    for (const auto& p : config_keys())
      if (p.section == section) member(p.key, json_text(p.get(config.values)));
    if (section == "model")
      for (const auto& [key, text] : config.values.model.switches) member(key, json_quoted(text));
    out += "}";
  }
  out += "\n  },\n  \"origins\": {";
  bool first = true;
  for (const auto& [name, origin] : config.origins) {
    const ConfigKey* p = find_config_key(name);
    out += std::string(first ? "" : ",") + "\n    " + json_quoted(name) + ": " +
           json_quoted(origin.text() + (p != nullptr && silenced(config.values, *p) ? ", has no effect here" : ""));
    first = false;
  }
  return out + "\n  }\n}\n";
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
  JsonWriter json;
  json.begin_array();
  for (const auto& p : config_keys())
    json.begin_object()
        .member("name", p.name())
        .member("default", toml_text(p.get(defaults)))
        .member("range", p.range())
        .member("meaning", p.meaning)
        .member("identifies", p.identifies)
        .end_object();
  for (const auto& s : rules.table)
    json.begin_object()
        .member("name", "model." + s.key)
        .member("model", s.model)
        .member("default", s.initial)
        .member("range", s.range)
        .member("meaning", s.meaning)
        .member("identifies", true)
        .end_object();
  return json.end_array().text() + "\n";
}

}  // namespace sb
