#include "config/draft.h"

#include <algorithm>

#include "base/text.h"
#include "config/config_faults.h"

namespace sb {

bool ConfigDraft::good(const std::string& prefix) const {
  const auto found = refused.lower_bound(prefix);
  return found == refused.end() || !found->starts_with(prefix);
}

void ConfigDraft::apply(const std::string& key) {
  const auto found = settings.find(key);
  const ConfigKey* p = find_config_key(key);
  if (found == settings.end() || !p) return;
  p->set(values(), parse_value(*p, found->second.value));
  out.origins[key] = Origin{Origin::Kind::given, found->second.origin, ""};
}

void ConfigDraft::derived(const std::string& key, const std::string& cause) {
  Origin& origin = out.origins[key];
  origin.kind = Origin::Kind::derived;
  origin.cause = cause;
}

void ConfigDraft::attempt(const std::function<void()>& act, bool placed) {
  try {
    act();
  } catch (const Error& error) {
    if (error.code() != Exit::bad_input) throw;
    const std::string lines = error.what();
    for (size_t from = 0; from <= lines.size();) {
      const size_t end = std::min(lines.find('\n', from), lines.size());
      const std::string line = lines.substr(from, end - from);
      faults.push_back(placed ? line : line + ", " + place_of(line));
      from = end + 1;
    }
  }
}

void ConfigDraft::take_key(const std::string& key, const std::function<void()>& act) {
  const size_t before = faults.size();
  attempt(act);
  if (faults.size() > before) refused.insert(key);
}

void ConfigDraft::refuse_unless(bool holds, const std::string& where, const std::string& what,
                                std::initializer_list<std::string> keys) {
  if (std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return refused.contains(key); })) return;
  if (!holds) faults.push_back("[" + where + "] " + what + ", " + place(keys));
}

void ConfigDraft::end() const {
  if (!faults.empty()) throw ConfigFaults(joined(faults, "\n"), key_of(faults.front()));
}

std::string ConfigDraft::key_of(const std::string& line) {
  return line.starts_with("[") ? line.substr(1, line.find(']') - 1) : "";
}

// Location of the setting that the line is about.
std::string ConfigDraft::place_of(const std::string& line) const {
  const std::string key = key_of(line);
  if (key.starts_with("model.")) return place({key, "model.width", "model.name"});
  if (key.starts_with("train.")) return place({key, "train.device"});
  if (key.starts_with("task.")) return place({key, "task.number"});
  if (key.starts_with("sample."))
    return place({"task." + key.substr(7), "grammar." + key.substr(7), "grammar.automaton"});
  return place({key, "grammar.automaton", "grammar.density", "grammar.depth", "task.length"});
}

// Location of the first of these keys that was given; else the config's name.
std::string ConfigDraft::place(std::initializer_list<std::string> keys) const {
  for (const auto& key : keys)
    if (const auto found = settings.find(key); found != settings.end()) return found->second.value.place.text();
  return Place{name, 1, 1}.text();
}

}  // namespace sb
