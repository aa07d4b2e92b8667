// A config while it is resolved: its values so far, where each comes from, and all that is wrong with it.
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
  // No key that begins so was refused.
  bool good(const std::string& prefix) const;
  // Whether only another kind of task reads the key.
  bool foreign(const ConfigKey& key) const { return !key.task_kind.empty() && key.task_kind != values().task.kind; }

  // Sets a key of config_keys() to the given value, if there is one.
  void apply(const std::string& key);
  // Notes what the value of a key follows from.
  void derived(const std::string& key, const std::string& cause);
  // Collects what `act` throws as bad_input; `placed`: its lines name their location already.
  void attempt(const std::function<void()>& act, bool placed = true);
  // The same; the key counts as refused if there was anything.
  void take_key(const std::string& key, const std::function<void()>& act);
  // `keys`: all that the condition depends on; where one of them was refused, it says nothing.
  void refuse_unless(bool holds, const std::string& where, const std::string& what,
                     std::initializer_list<std::string> keys);
  // Throws ConfigFaults if there are faults.
  void end() const;

  // The key that a line "[section.key] …" speaks of.
  static std::string key_of(const std::string& line);

 private:
  std::string place_of(const std::string& line) const;
  std::string place(std::initializer_list<std::string> keys) const;
};

}  // namespace sb
