// From TOML files and --set to one resolved run: values, where each came from, and the id that names the run.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runs/config.h"
#include "runs/schema.h"
#include "runs/toml_tree.h"

namespace sb {

// Part of every run id: raised when the same configuration would give other numbers (streams, defaults of the format).
constexpr int config_format = 1;

// What the models room knows and this room does not.
struct ModelRules {
  std::vector<std::string> switches;  // every key of [model] that some mixer reads; empty: not checked here
  std::function<void(const ModelSection&)> check;  // throws bad_input "[model.KEY] …"; the place is added here
  // The switches that differ from the model's defaults, each value spelled one way; what the run id takes.
  // Unset: all, as given.
  std::function<std::map<std::string, std::string>(const ModelSection&)> essential;
};

struct Setting {
  TomlValue value;
  Place key;     // of the name
  Place origin;  // as shown to the user: file position or the --set argument
};
// What was asked for, by "section.key": later sources have replaced earlier ones.
using Settings = std::map<std::string, Setting>;

// The file and, beneath it, what it extends. All errors are bad_input with one line that ends in file:line:col.
Settings read_settings(const std::string& path);
Settings parse_settings(std::string_view text, const std::string& path);
// [section] tables of a parsed document into `settings`; used for files, suites and overrides alike.
void add_settings(Settings& settings, const TomlValue::Table& sections, const std::string& relative_to);
// "section.key=value", the value as in TOML; a bare word is text.
void add_override(Settings& settings, const std::string& assignment);

struct Origin {
  enum class Kind { builtin, given, derived };
  Kind kind = Kind::builtin;
  Place place;        // given
  std::string cause;  // derived: from what

  std::string text() const;
};

struct ResolvedConfig {
  RunConfig values;
  std::map<std::string, Origin> origins;  // by "section.key", one for every parameter and switch
  std::string automaton_digest;           // SHA-256 of the automaton's file; empty: built
  std::string canonical;                  // JSON: what can change a number, sorted, each value spelled one way
  std::string run_id;                     // first 16 hex digits of the SHA-256 of `canonical`
};

// `name` stands in for a file where an error has no better place.
ResolvedConfig resolve(const Settings& settings, const ModelRules& rules, const std::string& name);
ResolvedConfig resolve_config(const std::string& path, const std::vector<std::string>& overrides,
                              const ModelRules& rules);

// The resolved config as a TOML file that resolves to itself; with `origins`, each line says where its value came from.
// `automaton` replaces the path of the automaton where one is used.
std::string config_toml(const ResolvedConfig& config, bool origins, const std::string& automaton = {});
// {"run_id", "values": {section: {key: value}}, "origins": {section.key: text}}
std::string config_json(const ResolvedConfig& config);

// Every parameter with range, default and meaning: `config keys`.
std::string parameter_table();
std::string parameter_json();

}  // namespace sb
