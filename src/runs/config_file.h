// From TOML files and --set to one resolved run: values, where each came from, and the id that names the run.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runs/config.h"
#include "runs/schema.h"
#include "runs/size_match.h"
#include "runs/toml_tree.h"

namespace sb {

// Part of every run id: raised when the same configuration would give other numbers (streams, defaults of the format).
// 3: dropout keyed by sample, frame and channel, each place of the network with its own stream; train.order_seed.
constexpr int config_format = 3;

// A switch of one model, for `config keys`.
struct SwitchRow {
  std::string model, key, initial, range, meaning;
};

// The network a config asks for: its width, and the value of every switch the model has, defaults resolved.
struct NetworkKeys {
  int64_t width = 0;
  std::map<std::string, std::string> switches;
  bool operator==(const NetworkKeys&) const = default;
};

// What the models room knows and this room does not.
struct ModelRules {
  std::vector<std::string> switches;  // every key of [model] that some mixer reads; empty: not checked here
  std::vector<SwitchRow> table;
  // Each throws bad_input, one "[section.key] …" a line; the place of the key is added here.
  std::vector<std::function<void(const RunConfig&)>> checks;
  std::function<void(const RunConfig&)> each_switch;  // the same, of every switch by itself; nothing for no model
  std::function<void(const RunConfig&)> samples;      // the same, asked where all else is right: that there are samples
  std::function<bool()> has_gpu;                      // what `train.device = "auto"` means here; unset: the CPU
  // What the run id takes of model.width and the switches. Unset: these, as given.
  std::function<NetworkKeys(const RunConfig&)> network;
  // Keys that the model does not read, as "section.key": quirks of other models. Unset: none.
  std::function<std::vector<std::string>(const RunConfig&)> unread;
  // The network of this model, switches, layers and task that comes nearest to a size; the automaton's file is read
  // where one is used. Throws bad_input "[suite.match] …" where none comes near. Unset: nothing can be matched.
  std::function<SizeFound(const RunConfig&, const SizeMatch&)> match;
  std::string shipped;  // folder of the configs that come with the program, for `extends` and `base`; empty: none
};

struct Setting {
  TomlValue value;
  Place key;     // of the name
  Place origin;  // as shown to the user: file position or the --set argument
};
// What was asked for, by "section.key": later sources have replaced earlier ones.
struct Settings : std::map<std::string, Setting> {
  std::vector<std::string> faults;  // what is no setting at all, a line each; resolve() says them with all the rest
  bool whole = true;                // false: a file it builds on could not be read
};

// The file and, beneath it, what it extends. Only a file that cannot be read or is no TOML is an error here, bad_input
// with one line that ends in file:line:col.
Settings read_settings(const std::string& path, const std::string& shipped = {});
Settings parse_settings(std::string_view text, const std::string& path, const std::string& shipped = {});
// The file a config names, ".toml" or not: beside the one in `folder`, else among the shipped ones.
std::string named_file(const std::string& folder, const std::string& name, const std::string& shipped);
// [section] tables of a parsed document into `settings`; used for files, suites and overrides alike.
void add_settings(Settings& settings, const TomlValue::Table& sections, const std::string& relative_to);
// Each "section.key=value", the value as in TOML; a bare word is text. One that an automaton in `settings` keeps from
// acting is a fault.
void add_overrides(Settings& settings, const std::vector<std::string>& assignments);
// The value of such an assignment, at `place`; `key` may be null. Throws bad_input where it is none.
TomlValue parse_assigned(const std::string& text, const ConfigKey* key, const Place& place);
// A line for each of `asked` that an automaton in `settings` keeps from acting.
std::vector<std::string> silenced_by_automaton(const Settings& settings, const Settings& asked);

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
  std::set<std::string> idle;             // keys that change no number here whatever their value
  std::string canonical;                  // JSON: what can change a number, sorted, each value spelled one way
  std::string run_id;                     // first 16 hex digits of the SHA-256 of `canonical`
};

// Automaton files by path, so that all runs of a suite see the same bytes.
using AutomatonFiles = std::map<std::string, std::shared_ptr<const AutomatonFile>>;
// Bounded and parsed; throws bad_input "[grammar.automaton] …" that ends in `from`.
std::shared_ptr<const AutomatonFile> read_automaton_file(const std::string& path, const Place& from);

// All that is wrong is found: the error has one line a fault, each with its place. `name` stands in for a file where a
// fault has no better place.
ResolvedConfig resolve(const Settings& settings, const ModelRules& rules, const std::string& name,
                       AutomatonFiles* files = nullptr);
// The task alone, for commands whose options are its keys; the same defaults, rules and checks.
TaskSection resolve_task(const Settings& settings, const std::string& name);
// Values with every default that follows from others, unchecked; what cannot be read keeps its default. The device is
// what `rules.has_gpu` says.
RunConfig tentative_values(const Settings& settings, const ModelRules& rules = {});
// A switch's value, spelled one way: 2, 2.0 and "2" are the same.
std::string switch_text(const std::string& key, const TomlValue& value);
ResolvedConfig resolve_config(const std::string& path, const std::vector<std::string>& overrides,
                              const ModelRules& rules);
ResolvedConfig resolve_config_text(std::string_view text, const std::string& path,
                                   const std::vector<std::string>& overrides, const ModelRules& rules);
// A config or suite as text, read once: what a pipe holds is gone then.
std::string read_config_text(const std::string& path);

// Whether other values keep this one from acting: the limits of a constant gap, the grammar beside an automaton.
bool silenced(const RunConfig& values, const ConfigKey& parameter);
// Keys that have nothing to act on: the samples of a grid without gaps, quirks of what the run does not do. In the run
// id each stands with its default.
std::set<std::string> idle_keys(const RunConfig& values);
// ResolvedConfig::canonical of values whose `idle` is known.
std::string canonical_json(const ResolvedConfig& config, const ModelRules& rules);

// The resolved config as a TOML file that resolves to itself; with `origins`, each line says where its value came from.
// `automaton` replaces the path of the automaton where one is used.
std::string config_toml(const ResolvedConfig& config, bool origins, const std::string& automaton = {});
// {"run_id", "values": {section: {key: value}}, "origins": {section.key: text}}
std::string config_json(const ResolvedConfig& config);

// Every parameter with range, default and meaning, and every switch of every model: `config keys`.
std::string parameter_table(const ModelRules& rules);
std::string parameter_json(const ModelRules& rules);

}  // namespace sb
