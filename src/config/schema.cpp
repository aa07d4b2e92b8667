#include "config/schema.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "base/number.h"
#include "base/suggest.h"
#include "config/task_schedule.h"

namespace sb {
namespace {

using Kind = ConfigKey::Kind;
constexpr size_t longest_list = 64;

Error wrong(const ConfigKey& p, const TomlValue& value, const std::string& what, const std::string& expected) {
  return bad_input(p.name(),
                   formatted("{}, expected {}, got {}, {}", what, expected, shown(value), value.place.text()));
}

int64_t parse_whole(const ConfigKey& p, const TomlValue& value) {
  const auto* number = std::get_if<int64_t>(&value.content);
  if (!number) throw wrong(p, value, "wrong kind of value", p.or_auto ? "an integer or auto" : "an integer");
  if (*number < p.least || *number > p.most) throw wrong(p, value, "out of range", p.range());
  return *number;
}

double parse_real(const ConfigKey& p, const TomlValue& value) {
  const auto* whole = std::get_if<int64_t>(&value.content);
  const auto* real = std::get_if<double>(&value.content);
  if (!whole && !real) throw wrong(p, value, "wrong kind of value", "a number");
  const double number = whole ? static_cast<double>(*whole) : *real;
  const bool inside =
      (p.above_low ? number > p.low : number >= p.low) && (p.below_high ? number < p.high : number <= p.high);
  if (!inside) throw wrong(p, value, "out of range", p.range());
  return number == 0 ? 0 : number;  // -0 and 0 are one value
}

std::string parse_text(const ConfigKey& p, const TomlValue& value) {
  const auto* text = value.text();
  if (!text) throw wrong(p, value, "wrong kind of value", p.kind == Kind::choice ? p.range() : "text");
  if (p.kind == Kind::choice) {
    for (const auto& name : p.choices)
      if (name == *text) return name;
    throw bad_input(p.name(), formatted("no such choice, expected {}, got {}{}, {}", p.range(), shown(value),
                                        did_you_mean(*text, p.choices), value.place.text()));
  }
  if (text->size() > 4096 || text->find('\0') != std::string::npos)
    throw wrong(p, value, "wrong kind of value", "at most 4096 bytes of text without NUL");
  return *text;
}

std::vector<int64_t> parse_wholes(const ConfigKey& p, const TomlValue& value) {
  const auto* list = value.list();
  if (!list) throw wrong(p, value, "wrong kind of value", "a list of integers");
  if (list->size() > longest_list)
    throw bad_input(p.name(), formatted("too long, expected at most {} entries, got {}, {}", longest_list, list->size(),
                                        value.place.text()));
  std::vector<int64_t> out;
  for (const auto& item : *list) out.push_back(parse_whole(p, item));
  std::sort(out.begin(), out.end());  // [20, 10] is [10, 20]
  return out;
}

}  // namespace

std::string ConfigKey::range() const {
  switch (kind) {
    case Kind::truth:
      return "true or false";
    case Kind::whole:
      return formatted("{}..{}{}", least, most, or_auto ? " or auto" : "");
    case Kind::real:
      return formatted("{}{:g}, {:g}{}", above_low ? '(' : '[', low, high, below_high ? ')' : ']');
    case Kind::choice:
      return join_or(choices);
    case Kind::wholes:
      return formatted("a list of {}..{}", least, most);
    case Kind::schedule:
      return "{task.KEY = {from, over}}";
    case Kind::text:
      break;
  }
  return file ? "path of a file" : "text";
}

ConfigKey own_key(const TaskKey& key) {
  ConfigKey p;
  p.section = "task";
  p.key = key.name;
  p.meaning = key.meaning;
  p.kind = std::holds_alternative<int64_t>(key.initial)  ? Kind::whole
           : std::holds_alternative<double>(key.initial) ? Kind::real
           : key.file                                    ? Kind::text
                                                         : Kind::choice;
  p.file = key.file;
  p.least = static_cast<int64_t>(key.least);
  p.most = static_cast<int64_t>(key.most);
  p.low = key.least;
  p.high = key.most;
  p.choices = key.choices;
  return p;
}

ConfigKey own_key(const TestAxis& axis) {
  ConfigKey p;
  p.section = "eval";
  p.key = axis.key;
  p.meaning = axis.meaning;
  p.kind = Kind::wholes;
  p.least = axis.least;
  p.most = axis.most;
  return p;
}

std::optional<ConfigKey> find_own_key(const TaskRow& row, const std::string& name) {
  if (row.name == kGapsKind) return std::nullopt;
  if (const TaskKey* key = name.starts_with("task.") ? row.find(name.substr(5)) : nullptr) return own_key(*key);
  if (row.axis && name == "eval." + row.axis->key) return own_key(*row.axis);
  return std::nullopt;
}

std::vector<std::pair<std::string, ConfigKey>> own_keys() {
  std::vector<std::pair<std::string, ConfigKey>> out;
  for (const TaskRow& row : task_registry()) {
    if (row.name == kGapsKind) continue;
    for (const TaskKey& key : row.keys) out.emplace_back(row.name, own_key(key));
    if (row.axis) out.emplace_back(row.name, own_key(*row.axis));
  }
  return out;
}

bool names_file(const std::string& name) {
  if (name == "grammar.automaton") return true;
  const auto own = own_keys();
  return std::any_of(own.begin(), own.end(),
                     [&](const auto& each) { return each.second.file && each.second.name() == name; });
}

ConfigValue config_value(const TaskValue& value) {
  return std::visit([](const auto& v) { return ConfigValue(v); }, value);
}

const ConfigKey* find_config_key(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string, const ConfigKey*> map;
    for (const auto& p : config_keys()) map.emplace(p.name(), &p);
    return map;
  }();
  const auto found = index.find(std::string(name));
  return found == index.end() ? nullptr : found->second;
}

const std::vector<std::string>& section_names() {
  static const std::vector<std::string> names = {"grammar", "task", "model", "train", "eval", "quirks", "run"};
  return names;
}

ConfigValue parse_value(const ConfigKey& p, const TomlValue& value) {
  switch (p.kind) {
    case Kind::truth:
      if (const auto* truth = std::get_if<bool>(&value.content)) return *truth;
      throw wrong(p, value, "wrong kind of value", "true or false");
    case Kind::whole:
      if (const auto* text = value.text(); p.or_auto && text && *text == kAutomaticWord) return *text;
      return parse_whole(p, value);
    case Kind::real:
      return parse_real(p, value);
    case Kind::wholes:
      return parse_wholes(p, value);
    case Kind::schedule:
      return schedule_text(parse_schedule(value));
    case Kind::text:
    case Kind::choice:
      break;
  }
  return parse_text(p, value);
}

std::string toml_text(const ConfigKey& key, const ConfigValue& value) {
  return key.kind == Kind::schedule ? std::get<std::string>(value) : toml_text(value);
}

std::string toml_text(const ConfigValue& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return shortest(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return toml_quoted(*text);
  return formatted("[{}]", joined(std::get<std::vector<int64_t>>(value), ", "));
}

std::string json_text(const ConfigValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return json_quoted(*text);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return formatted("[{}]", joined(*list, ","));
  return toml_text(value);
}

const char* to_string(Precision precision) {
  static constexpr const char* names[] = {"fp64", "fp32", "tf32", "amp"};
  return names[static_cast<size_t>(precision)];
}

const char* to_string(Protocol protocol) {
  return protocol == Protocol::corrected ? "corrected" : "published";
}
const char* to_string(DeviceKind device) {
  static constexpr const char* names[] = {"cpu", "cuda", "auto"};
  return names[static_cast<size_t>(device)];
}

}  // namespace sb
