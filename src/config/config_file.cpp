#include "config/config_file.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t deepest_chain = 16;

std::string folder_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}

std::string beside(const std::string& folder, const std::string& path) {
  return fs::path(path).is_absolute() || folder.empty() ? path : (fs::path(folder) / path).lexically_normal().string();
}

std::vector<std::string> keys_of(const std::string& section) {
  std::vector<std::string> keys;
  for (const auto& p : config_keys())
    if (p.section == section) keys.push_back(p.key);
  for (const auto& [kind, p] : own_keys())
    if (p.section == section) keys.push_back(p.key);
  return keys;
}

// "" if the name is a config key or may be a switch, else its fault.
std::string name_fault(const std::string& section, const std::string& key) {
  const auto& sections = section_names();
  if (std::find(sections.begin(), sections.end(), section) == sections.end())
    return formatted("[config] unknown section '{}'{}", printable(section), did_you_mean(section, sections));
  const std::vector<std::string> known = keys_of(section);
  if (section == "model" || std::find(known.begin(), known.end(), key) != known.end()) return "";
  return formatted("[{}] unknown key '{}'{}", section, printable(key), did_you_mean(key, known));
}

bool is_integer(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

struct Chain {
  std::vector<std::string> files;
  std::string shipped;
};

void load(Settings& settings, std::string_view text, const std::string& path, Chain& chain);

void load_parent(Settings& settings, const TomlValue& value, const std::string& path, Chain& chain) {
  const auto* parent = value.text();
  if (!parent || parent->empty())
    throw bad_input("extends", formatted("expected the name of a file, got {}, {}", shown(value), value.place.text()));
  const std::string target = named_file(folder_of(path), *parent, chain.shipped);
  std::error_code ignored;
  const std::string identity = fs::weakly_canonical(target, ignored).string();
  if (std::find(chain.files.begin(), chain.files.end(), identity) != chain.files.end())
    throw bad_input("extends", formatted("'{}' extends itself, {}", printable(*parent), value.place.text()));
  if (chain.files.size() >= deepest_chain)
    throw bad_input("extends", formatted("more than {} files deep, {}", deepest_chain, value.place.text()));
  chain.files.push_back(identity);
  load(settings, read_text(target, kMaxFileBytes, "extends", value.place), target, chain);
}

void load(Settings& settings, std::string_view text, const std::string& path, Chain& chain) {
  const TomlValue document = parse_toml(text, path);
  TomlValue::Table sections;
  for (const auto& member : *document.table()) {
    if (member.key != "extends") {
      sections.push_back(member);
      continue;
    }
    try {
      load_parent(settings, member.value, path, chain);
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;
      settings.faults.push_back(error.what());
      settings.whole = false;
    }
  }
  add_settings(settings, sections, folder_of(path));
}

Settings load_all(std::string_view text, const std::string& path, const std::string& shipped) {
  std::error_code ignored;
  Chain chain{{fs::weakly_canonical(path, ignored).string()}, shipped};
  Settings settings;
  load(settings, text, path, chain);
  return settings;
}

bool names_automaton(const TomlValue& value) {
  return value.text() && !value.text()->empty();
}

// Whether an automaton replaces this key of [grammar].
bool gives_way_to_automaton(const std::string& key) {
  return key != "automaton" && key != "seed" && find_config_key("grammar." + key);
}

std::string no_effect(const std::string& key, const Place& place) {
  return formatted("[grammar.{}] cannot be combined with grammar.automaton, {}", key, place.text());
}

// Adds a fault for each key that an automaton in the same file replaces.
void refuse_beside_automaton(Settings& settings, const TomlValue::Table& grammar) {
  const auto is_automaton = [](const TomlMember& member) {
    return member.key == "automaton" && names_automaton(member.value);
  };
  if (std::none_of(grammar.begin(), grammar.end(), is_automaton)) return;
  for (const auto& member : grammar)
    if (gives_way_to_automaton(member.key)) settings.faults.push_back(no_effect(member.key, member.place));
}

bool is_bare_word(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./+ ,:~").find(c) != std::string_view::npos;
  });
}

// ", did you mean train.lr?" for a key without its section: every section that has this key, or else the key with the
// nearest name.
std::string section_hint(const std::string& key) {
  std::vector<std::string> keys, found;
  for (const auto& known : config_keys()) keys.push_back(known.key);
  const bool exact = std::find(keys.begin(), keys.end(), key) != keys.end();
  const std::string name = exact ? key : nearest(key, keys);
  for (const auto& known : config_keys())
    if (!name.empty() && known.key == name) found.push_back(known.name());
  return found.empty() ? "" : ", did you mean " + join_or(found) + "?";
}

void add_override(Settings& settings, const std::string& assignment) try {
  const Place place{"--set " + printable(assignment, 80), 0, 0};
  const std::string_view text = assignment;
  const size_t equals = text.find('='), dot = text.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals)
    throw bad_input(
        "config", "expected section.key=value, got " + place.text() +
                      (equals == std::string::npos ? "" : section_hint(std::string(trimmed(text.substr(0, equals))))));
  const std::string section(trimmed(text.substr(0, dot)));
  const std::string key(trimmed(text.substr(dot + 1, equals - dot - 1)));
  const std::string fault = name_fault(section, key);
  if (!fault.empty()) throw Error(Exit::bad_input, fault + ", " + place.text());
  const std::string name = section + "." + key;
  const TomlValue value = parse_assigned(std::string(trimmed(text.substr(equals + 1))), find_config_key(name), place);
  settings.insert_or_assign(name, Setting{value, place, place});
} catch (const Error& error) {
  if (error.code() != Exit::bad_input) throw;
  settings.faults.push_back(error.what());
}

}  // namespace

TomlValue parse_assigned(const std::string& text, const ConfigKey* parameter, const Place& place) {
  const bool wants_text =
      parameter && (parameter->kind == ConfigKey::Kind::text || parameter->kind == ConfigKey::Kind::choice);
  const bool quoted = !text.empty() && (text.front() == '"' || text.front() == '\'');
  if (wants_text && !quoted && is_bare_word(text)) return {text, place};
  TomlValue value;
  try {
    const TomlValue document = parse_toml("value = " + text, "--set");
    const auto& table = *document.table();
    if (table.size() != 1) throw bad_input("config", "");
    value = table.front().value;
  } catch (const Error&) {
    if (text.empty() || !is_bare_word(text)) throw bad_input("config", "not a TOML value, " + place.text());
    if (parameter && is_integer(text))  // beyond 64 bits
      throw bad_input(parameter->name(), formatted("out of range, expected {}, got {}, {}", parameter->range(),
                                                   printable(text, 40), place.text()));
    value.content = text;
  }
  move_place(value, place);
  return value;
}

void add_settings(Settings& settings, const TomlValue::Table& sections, const std::string& relative_to) {
  for (const auto& section : sections) {
    const auto* keys = section.value.table();
    if (const std::string fault = name_fault(section.key, ""); fault.starts_with("[config]")) {
      settings.faults.push_back(fault + ", " + section.place.text());
      continue;
    }
    if (!keys) {
      settings.faults.push_back(formatted("[config] '{}' is a section, expected [{}], got {}, {}", section.key,
                                          section.key, shown(section.value), section.value.place.text()));
      continue;
    }
    if (section.key == "grammar") refuse_beside_automaton(settings, *keys);
    for (const auto& member : *keys) {
      if (const std::string fault = name_fault(section.key, member.key); !fault.empty()) {
        settings.faults.push_back(fault + ", " + member.place.text());
        continue;
      }
      Setting setting{member.value, member.place, member.value.place};
      const std::string name = section.key + "." + member.key;
      if (names_file(name))
        if (const auto* path = member.value.text(); path && !path->empty())
          setting.value.content = beside(relative_to, *path);
      settings.insert_or_assign(name, std::move(setting));
    }
  }
}

void add_overrides(Settings& settings, const std::vector<std::string>& assignments) {
  Settings asked;
  for (const auto& assignment : assignments) add_override(asked, assignment);
  settings.faults.insert(settings.faults.end(), asked.faults.begin(), asked.faults.end());
  for (const auto& [name, setting] : asked) settings.insert_or_assign(name, setting);
  for (auto& line : silenced_by_automaton(settings, asked)) settings.faults.push_back(std::move(line));
}

std::vector<std::string> silenced_by_automaton(const Settings& settings, const Settings& asked) {
  const auto automaton = settings.find("grammar.automaton");
  if (automaton == settings.end() || !names_automaton(automaton->second.value)) return {};
  const std::string section = "grammar.";
  std::vector<std::string> lines;
  for (const auto& [name, setting] : asked)
    if (name.starts_with(section) && gives_way_to_automaton(name.substr(section.size())))
      lines.push_back(no_effect(name.substr(section.size()), setting.key));
  return lines;
}

std::string named_file(const std::string& folder, const std::string& name, const std::string& shipped) {
  const std::string near = beside(folder, name);
  std::vector<std::string> places = {near, near + ".toml"};
  if (!shipped.empty() && !fs::path(name).is_absolute()) {
    const std::string far = beside(shipped, name);
    places.insert(places.end(), {far, far + ".toml"});
  }
  for (const auto& place : places) {
    if (is_there(place) && !is_folder(place)) return place;
  }
  return near;
}

std::string read_config_text(const std::string& path) {
  return read_text(path, kMaxFileBytes, "config", {path, 1, 1});
}

Settings read_settings(const std::string& path, const std::string& shipped) {
  return load_all(read_config_text(path), path, shipped);
}

Settings parse_settings(std::string_view text, const std::string& path, const std::string& shipped) {
  return load_all(text, path, shipped);
}

namespace {

// Drops switches of files that the model of an override lacks; a line for each. Switches in `asked`, the overrides,
// stay.
std::vector<std::string> drop_switches(Settings& settings, const Settings& asked, const std::string& file_model,
                                       const ModelRules& rules) {
  const auto model = asked.find("model.name");
  const std::string* name = model == asked.end() ? nullptr : model->second.value.text();
  if (!name || *name == file_model) return {};
  std::vector<std::string> notes;
  std::erase_if(settings, [&](const auto& entry) {
    const auto& [key, setting] = entry;
    if (!key.starts_with("model.") || find_config_key(key) || asked.contains(key)) return false;
    bool known = false;
    for (const SwitchRow& row : rules.table) {
      if ("model." + row.key != key) continue;
      if (row.model == *name) return false;
      known = true;
    }
    if (known)
      notes.push_back(key + " is not used: " + printable(*name) + " has no such switch, " + setting.origin.text());
    return known;
  });
  return notes;
}

}  // namespace

ResolvedConfig resolve_config(const std::string& path, const std::vector<std::string>& overrides,
                              const ModelRules& rules) {
  return resolve_config_text(read_config_text(path), path, overrides, rules);
}

ResolvedConfig resolve_config_text(std::string_view text, const std::string& path,
                                   const std::vector<std::string>& overrides, const ModelRules& rules) {
  Settings settings = parse_settings(text, path, rules.shipped);
  const auto model = settings.find("model.name");
  const std::string* before = model == settings.end() ? nullptr : model->second.value.text();
  const std::string file_model = before ? *before : RunConfig{}.model.name;
  Settings asked;
  add_overrides(asked, overrides);
  add_overrides(settings, overrides);
  std::vector<std::string> notes = drop_switches(settings, asked, file_model, rules);
  ResolvedConfig out = resolve(settings, rules, path);
  out.notes = std::move(notes);
  return out;
}

}  // namespace sb
