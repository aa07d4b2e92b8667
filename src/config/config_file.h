// Resolves TOML files and --set arguments to one run: values, the origin of each value, and the run id.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/schema.h"
#include "config/size_match.h"
#include "config/toml_tree.h"

namespace sb {

// Part of every run id. Incremented when the same config would give other numbers (streams, defaults of the format).
// 3: dropout keyed by sample, frame and channel, with a separate stream for each position in the network;
// train.order_seed.
constexpr int config_format = 3;

// A switch of one model, for `config keys`.
struct SwitchRow {
  std::string model, key, initial, range, meaning;
};

// The network of a config: its width and the value of every switch of the model, with defaults resolved.
struct NetworkKeys {
  int64_t width = 0;
  std::map<std::string, std::string> switches;
  bool operator==(const NetworkKeys&) const = default;
};

// Rules of the models module, which this module does not link to.
struct ModelRules {
  std::vector<std::string> switches;  // every key of [model] that some mixer reads; empty: not checked here
  std::vector<SwitchRow> table;
  // Each throws bad_input with one line "[section.key] …" per error; the caller adds the location of the key.
  std::vector<std::function<void(const RunConfig&)>> checks;
  std::function<void(const RunConfig&)> each_switch;  // the same for each switch alone; skips unknown models
  std::function<void(const RunConfig&)> samples;      // the same, after all other checks: the samples can be drawn
  std::function<bool()> has_gpu;                      // whether `train.device = "auto"` means the GPU; unset: the CPU
  // The width and switches that enter the run id. Unset: as given.
  std::function<NetworkKeys(const RunConfig&)> network;
  // Keys that the model ignores, as "section.key": quirks of other models. Unset: none.
  std::function<std::vector<std::string>(const RunConfig&)> unread;
  // The network of this model, switches, layers and task whose size is nearest to the target. Reads the automaton file
  // if one is used. Throws bad_input "[suite.match] …" if no size is near enough. Unset: no sizes can be matched.
  std::function<SizeFound(const RunConfig&, const SizeMatch&)> match;
  std::string shipped;  // folder of the shipped configs, for `extends` and `base`; empty: none
};

struct Setting {
  TomlValue value;
  Place key;     // location of the key
  Place origin;  // shown to the user: file position or --set argument
};
// Requested settings by "section.key"; later sources override earlier ones.
struct Settings : std::map<std::string, Setting> {
  std::vector<std::string> faults;  // entries that are not settings, one line each; resolve() reports them
  bool whole = true;                // false: an extended file could not be read
};

// Reads the file and the files it extends, which it overrides. Throws bad_input only if a file cannot be read or is not
// TOML, with one line that ends in file:line:col.
Settings read_settings(const std::string& path, const std::string& shipped = {});
Settings parse_settings(std::string_view text, const std::string& path, const std::string& shipped = {});
// Path of the file that a config names, with or without ".toml": relative to `folder`, else among the shipped files.
std::string named_file(const std::string& folder, const std::string& name, const std::string& shipped);
// Adds the [section] tables of a parsed document to `settings`; used for files, suites and overrides.
void add_settings(Settings& settings, const TomlValue::Table& sections, const std::string& relative_to);
// Adds assignments "section.key=value" with TOML values; a bare word is text. An assignment that has no effect because
// of an automaton in `settings` is an error.
void add_overrides(Settings& settings, const std::vector<std::string>& assignments);
// Parses the value of an assignment at `place`; `key` may be null. Throws bad_input if it is not a value.
TomlValue parse_assigned(const std::string& text, const ConfigKey* key, const Place& place);
// One line for each setting in `asked` that has no effect because of an automaton in `settings`.
std::vector<std::string> silenced_by_automaton(const Settings& settings, const Settings& asked);

struct Origin {
  enum class Kind { builtin, given, derived };
  Kind kind = Kind::builtin;
  Place place;        // given
  std::string cause;  // derived: what it follows from

  std::string text() const;
};

struct ResolvedConfig {
  RunConfig values;
  std::map<std::string, Origin> origins;      // by "section.key", one for every parameter and switch
  std::set<std::string> keys_without_effect;  // keys without effect in this config
  std::string canonical;                // JSON: everything that can change a number, sorted, in canonical spelling
  std::string run_id;                   // first 16 hex digits of the SHA-256 of `canonical`
  std::vector<std::string> notes = {};  // settings that were dropped, one line each
};

// Files that configs name, by path, so that all runs of a suite see the same bytes.
struct ConfigFiles {
  std::map<std::string, std::shared_ptr<const AutomatonFile>> automata;
  std::map<std::string, std::shared_ptr<const TaskFile>> tasks;
};

// Resolves and checks everything. The error has one line per problem, each with its location. `name` replaces a file
// name if a problem has no better location.
ResolvedConfig resolve(const Settings& settings, const ModelRules& rules, const std::string& name,
                       ConfigFiles* files = nullptr);
// Resolves only the task, for commands whose options are task keys; with the same defaults, rules and checks.
TaskSection resolve_task(const Settings& settings, const std::string& name);
// Values with all derived defaults, unchecked; invalid values keep their default. The device follows `rules.has_gpu`.
RunConfig tentative_values(const Settings& settings, const ModelRules& rules = {});
// The canonical text of a switch's value: 2, 2.0 and "2" give the same text.
std::string switch_text(const std::string& key, const TomlValue& value);
ResolvedConfig resolve_config(const std::string& path, const std::vector<std::string>& overrides,
                              const ModelRules& rules);
ResolvedConfig resolve_config_text(std::string_view text, const std::string& path,
                                   const std::vector<std::string>& overrides, const ModelRules& rules);
// Reads the text of a config or suite. Call once: the content of a pipe can be read only once.
std::string read_config_text(const std::string& path);

// Whether other values make this key ineffective: e.g. the maximum of a constant gap, or grammar keys with an
// automaton.
bool silenced(const RunConfig& values, const ConfigKey& parameter);
// Keys without anything to act on, e.g. the grid samples without a grid, or quirks of features that the run does not
// use. The run id uses their defaults.
std::set<std::string> idle_keys(const RunConfig& values);
// Computes ResolvedConfig::canonical; values and `keys_without_effect` must be set.
std::string canonical_json(const ResolvedConfig& config, const ModelRules& rules);

// The resolved config as TOML that resolves to the same config. With `origins`, each line names the origin of its
// value. `automaton`, if given, replaces the path of the automaton.
std::string config_toml(const ResolvedConfig& config, bool origins, const std::string& automaton = {});
// {"run_id", "values": {section: {key: value}}, "origins": {section.key: text}}
std::string config_json(const ResolvedConfig& config);

// Every parameter with range, default and meaning, and every switch of every model: `config keys`.
std::string parameter_table(const ModelRules& rules);
std::string parameter_json(const ModelRules& rules);

}  // namespace sb
