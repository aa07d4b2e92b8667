#include "report/axes.h"

#include <algorithm>
#include <compare>
#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "config/schema.h"
#include "store/json_fields.h"
#include "store/run_lock.h"
#include "store/seal.h"
#include "suites/frozen_suite.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxRecordBytes = size_t{1} << 20;
constexpr int record_schema = 2;  // of suite.json
constexpr size_t most_suites = 1000;
constexpr size_t most_networks = 1000;  // of a suite

struct Recorded {
  std::string name;
  std::vector<std::string> select, average;
  std::vector<MatchedNetwork> matched;
  auto operator<=>(const Recorded&) const = default;
};

void add_networks(std::vector<MatchedNetwork>& all, const std::vector<MatchedNetwork>& more) {
  for (const auto& each : more)
    if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
}

void add_once(std::vector<std::string>& keys, const std::string& key) {
  if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
}

std::string path_of(const std::string& root) {
  return (fs::path(root) / "suite.json").string();
}

std::vector<std::string> texts_of(const nlohmann::json& entry, const char* key, const std::string& path) {
  std::vector<std::string> out;
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array())
    throw bad_input("suite", path + ": expected lists select and average");
  for (const auto& item : *found) {
    if (!item.is_string()) throw bad_input("suite", path + ": expected names of keys");
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<MatchedNetwork> networks_of(const nlohmann::json& entry, const std::string& path) {
  const auto found = entry.find("matched");
  return found == entry.end() ? std::vector<MatchedNetwork>{} : parse_networks(*found, path);
}

// Returns an empty list if the file does not exist.
std::vector<Recorded> read_record(const std::string& path, const RunTree& tree = RunTree::disk()) {
  if (!tree.exists(path)) return {};
  const std::string text = tree.read(path, kMaxRecordBytes);
  const nlohmann::json parsed = parse_bounded(text, kMaxRecordBytes, "suite", path);
  if (!is_sealed(text)) throw bad_input("suite", printable(path, 400) + ": SHA-256 mismatch");
  const auto suites = parsed.find("suites");
  if (suites == parsed.end() || !suites->is_array()) throw bad_input("suite", path + ": expected a list of suites");
  std::vector<Recorded> out;
  for (const auto& entry : *suites) {
    const auto name = entry.is_object() ? entry.find("name") : entry.end();
    if (!entry.is_object() || name == entry.end() || !name->is_string())
      throw bad_input("suite", path + ": expected suites with a name");
    out.push_back({name->get<std::string>(), texts_of(entry, "select", path), texts_of(entry, "average", path),
                   networks_of(entry, path)});
  }
  return out;
}

// Takes the lock of a record, so that concurrent suites lose no entries. Returns nullopt with a warning if the lock
// stays held.
std::optional<RunLock> lock_within(const std::string& path, double seconds, const std::function<bool()>& stop,
                                   std::vector<std::string>& warnings) {
  try {
    return wait_for_lock(path, seconds, stop);
  } catch (const Error& error) {
    if (error.code() != Exit::stopped) throw;
    warnings.push_back(std::string(error.what()) + "; the axes of this suite are not recorded");
    return std::nullopt;
  }
}

// Renames a damaged file and returns its new name.
std::string set_aside(const std::string& path) {
  std::error_code failed;
  std::string kept = path + ".damaged";
  for (int i = 2; fs::exists(fs::symlink_status(kept, failed)); ++i) kept = path + ".damaged-" + std::to_string(i);
  fs::rename(path, kept, failed);
  if (failed) throw cannot_write("suite", "cannot rename " + printable(path, 400) + ": " + failed.message());
  return kept;
}

Json recorded_json(const Recorded& suite) {
  Json json = {{"name", suite.name}, {"select", suite.select}, {"average", suite.average}};
  if (!suite.matched.empty()) json["matched"] = networks_json(suite.matched);
  return json;
}

}  // namespace

void Axes::add_select(const std::string& key) {
  add_once(select, key);
}
void Axes::add_average(const std::string& key) {
  add_once(average, key);
}

std::string config_key(const std::string& axis) {
  if (!axis.starts_with("model.") || axis.starts_with("model.switch ") || find_config_key(axis)) return axis;
  return "model.switch " + axis.substr(6);
}

std::string axis_name(const std::string& config_key) {
  return config_key.starts_with("model.switch ") ? "model." + config_key.substr(13) : config_key;
}

Axes axes_of(const Suite& suite) {
  Axes axes;
  for (const auto& key : suite.select) axes.add_select(key);
  for (const auto& key : suite.average) axes.add_average(key);
  return axes;
}

std::vector<std::string> record_suite(const std::string& root, const Suite& suite, const std::function<bool()>& stop,
                                      double patience_seconds) {
  const std::string path = path_of(root);
  std::vector<std::string> warnings;
  const auto lock = lock_within(path + ".lock", patience_seconds, stop, warnings);
  if (!lock) return warnings;
  std::vector<Recorded> all;
  try {
    all = read_record(path);
  } catch (const Error& error) {
    warnings.push_back(std::string(error.what()) + "; kept as " + printable(set_aside(path), 400) + ", written anew");
  }
  // Suites without a name are distinguished by their axes.
  Recorded now{suite.name, suite.select, suite.average, suite.matched};
  for (const auto& each : all)  // part of the suite may have been run before
    if (each.name == now.name && each.select == now.select && each.average == now.average)
      add_networks(now.matched, each.matched);
  std::sort(now.matched.begin(), now.matched.end());
  if (now.matched.size() > most_networks) now.matched.resize(most_networks);
  std::erase_if(all, [&](const Recorded& each) {
    return each.name == now.name && (!now.name.empty() || (each.select == now.select && each.average == now.average));
  });
  if (all.size() >= most_suites) all.erase(all.begin());
  all.push_back(now);
  std::sort(all.begin(), all.end());
  Json suites = Json::array();
  for (const auto& each : all) suites.push_back(recorded_json(each));
  const std::string text = sealed_json(json_document({{"schema", record_schema}, {"suites", std::move(suites)}}));
  FencedFiles files(real_file_system(), *lock);  // a suspended process must not overwrite later entries
  try {
    replace_file(path, text, files);
  } catch (const Error& error) {
    if (error.code() != Exit::taken_over) throw;
    warnings.push_back(std::string(error.what()) + "; the axes of this suite are not recorded");
  }
  return warnings;
}

std::string record_fault(const std::string& root, const RunTree& tree) {
  try {
    read_record(path_of(root), tree);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Axes recorded_axes(const std::vector<std::string>& roots, std::vector<std::string>& notes, const RunTree& tree,
                   const std::function<bool(const MatchedNetwork&)>& shown) {
  std::map<std::string, std::string> told[2];  // by key: which suite averages over it [0] or selects over it [1]
  std::vector<MatchedNetwork> matched;
  for (const auto& root : roots) {
    try {
      for (const auto& suite : read_record(path_of(root), tree)) {
        add_networks(matched, suite.matched);
        for (const bool select : {true, false})
          for (const auto& key : select ? suite.select : suite.average) {
            const std::string known = key.starts_with("model.") ? key.substr(6) : "";  // switches are not checked here
            const std::string fault = axis_fault(key, {known}, select);
            const std::string who =
                suite.name.empty() ? "a suite without a name" : "suite '" + printable(suite.name) + "'";
            if (!fault.empty()) {
              notes.push_back("axis of " + who + " not used: " + fault);
            } else {
              told[select ? 1 : 0].emplace(key, who);
            }
          }
      }
    } catch (const Error& error) {
      notes.push_back("not used: " + printable(error.what(), 1000));
    }
  }
  if (shown) std::erase_if(matched, [&](const MatchedNetwork& network) { return !shown(network); });
  for (const auto& line : match_lines(matched)) notes.push_back(line);
  Axes axes;
  for (const bool select : {true, false})
    for (const auto& [key, who] : told[select ? 1 : 0]) {
      if (const auto other = told[select ? 0 : 1].find(key); other != told[select ? 0 : 1].end()) {
        if (select)
          notes.push_back("neither selected nor averaged over " + printable(key) + ": " + who + " selects over it, " +
                          other->second + " averages");
        continue;
      }
      select ? axes.add_select(key) : axes.add_average(key);
      notes.push_back((select ? "also selected over " : "also averaged over ") + printable(key) + ", as set by " + who);
    }
  return axes;
}

}  // namespace sb
