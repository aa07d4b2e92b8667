// Table of all config keys: name, kind, range, meaning and member of RunConfig.
// Reading, checking, `config show`, `config keys` and the run id all use this table.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.h"
#include "config/toml_tree.h"

namespace sb {

// Text of kAutomatic in a file.
constexpr const char* kAutomaticWord = "auto";

using ConfigValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;

struct ConfigKey {
  // wholes: a sorted set of integers; schedule: a table, held as its TOML text
  enum class Kind { truth, whole, real, text, choice, wholes, schedule };

  std::string section, key;
  Kind kind = Kind::whole;
  int64_t least = 0, most = 0;       // whole, and each of wholes
  bool or_auto = false;              // whole: "auto" is also allowed
  double low = 0, high = 0;          // real
  bool above_low = false;            // excludes low
  bool below_high = false;           // excludes high
  std::vector<std::string> choices;  // choice
  std::string meaning;
  bool identifies = true;  // part of the run id
  bool file = false;       // text of a kind's own key: the path of a file
  std::string task_kind;   // the kind of task that reads the key; empty: all
  ConfigValue (*get)(const RunConfig&) = nullptr;
  void (*set)(RunConfig&, const ConfigValue&) = nullptr;

  std::string name() const { return section + "." + key; }
  std::string range() const;  // "1..65536", "(0, 1]", "cpu or cuda", …
};

// A key that only one kind of task has. get and set are empty: TaskSection::keys and EvalSection::points hold values.
ConfigKey own_key(const TaskKey& key);
ConfigKey own_key(const TestAxis& axis);
// The key of this name that only this kind has; nullopt if it has none. `gaps` has only keys of config_keys().
std::optional<ConfigKey> find_own_key(const TaskRow& row, const std::string& name);
// Whether the key of this name is the path of a file, relative to the config that sets it.
bool names_file(const std::string& name);
// Every kind with its own keys.
std::vector<std::pair<std::string, ConfigKey>> own_keys();
ConfigValue config_value(const TaskValue& value);

const std::vector<ConfigKey>& config_keys();              // grouped by section, in the order of documentation
const ConfigKey* find_config_key(std::string_view name);  // "train.lr"; null if absent
const std::vector<std::string>& section_names();

// The value, checked for kind and range. Throws bad_input "[train.lr] …, file:line:col".
ConfigValue parse_value(const ConfigKey& parameter, const TomlValue& value);

std::string toml_text(const ConfigValue& value);
std::string toml_text(const ConfigKey& key, const ConfigValue& value);  // as a file spells the value of this key
std::string json_text(const ConfigValue& value);

const char* to_string(Precision precision);
const char* to_string(DeviceKind device);
const char* to_string(Protocol protocol);

}  // namespace sb
