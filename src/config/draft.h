// A config while it is resolved: its values so far, the origin of each value, and all faults found.
#pragma once
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "config/config_file.h"

namespace sb {

struct ConfigDraft {
  ConfigDraft(const Settings& given, std::string file) : settings(given), name(std::move(file)) {}

  const Settings& settings;
  std::string name;  // replaces a file name if a fault has no better location
  ResolvedConfig out;
  std::vector<std::string> faults;  // lines "[section.key] …, file:line:col"
  std::set<std::string> refused;    // keys whose values were refused; they keep their defaults

  RunConfig& values() { return out.values; }
  const RunConfig& values() const { return out.values; }
  bool given(const std::string& key) const { return settings.contains(key); }
  // Whether no key with this prefix was refused.
  bool good(const std::string& prefix) const;
  // Whether only another kind of task reads the key.
  bool foreign(const ConfigKey& key) const { return !key.task_kind.empty() && key.task_kind != values().task.kind; }

  // Sets a key of config_keys() to the given value, if there is one.
  void apply(const std::string& key);
  // Records the cause of a derived value, e.g. the key that it follows from.
  void derived(const std::string& key, const std::string& cause);
  // Runs `act` and collects the lines of a bad_input that it throws. `placed`: the lines already name their location.
  void attempt(const std::function<void()>& act, bool placed = true);
  // Like attempt(); if there was a fault, the key counts as refused.
  void take_key(const std::string& key, const std::function<void()>& act);
  // Adds a fault unless `holds`. `keys`: all keys that the condition depends on; no fault if one of them was refused.
  void refuse_unless(bool holds, const std::string& where, const std::string& what,
                     std::initializer_list<std::string> keys);
  // Throws ConfigFaults if there are faults.
  void end() const;

  // The key of a line "[section.key] …".
  static std::string key_of(const std::string& line);

 private:
  std::string place_of(const std::string& line) const;
  std::string place(std::initializer_list<std::string> keys) const;
};

}  // namespace sb
