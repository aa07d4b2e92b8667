#include "suites/frozen_suite.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "store/json_fields.h"
#include "store/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxFrozenBytes = size_t{1} << 28;
constexpr size_t most_networks = 1000;
constexpr const char* frozen_name = "frozen-suite.json";
constexpr int frozen_schema = 1;

std::vector<std::string> texts_of(const nlohmann::json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array() ||
      !std::all_of(found->begin(), found->end(), [](const auto& item) { return item.is_string(); }))
    throw bad_input("suite", printable(path, 400) + ": expected a list of texts as " + key);
  return found->get<std::vector<std::string>>();
}

std::string text_of(const nlohmann::json& object, const char* key, const std::string& path) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_string())
    throw bad_input("suite", printable(path, 400) + ": expected a text as " + key);
  return found->get<std::string>();
}

}  // namespace

nlohmann::ordered_json networks_json(const std::vector<MatchedNetwork>& networks) {
  Json out = Json::array();
  for (const auto& each : networks)
    out.push_back({{"model", each.model},
                   {"width", each.width},
                   {"by", to_string(each.by)},
                   {"target", each.target},
                   {"size", each.size}});
  return out;
}

std::vector<MatchedNetwork> parse_networks(const nlohmann::json& list, const std::string& path) {
  if (!list.is_array() || list.size() > most_networks)
    throw bad_input("suite", path + ": expected a list of at most " + std::to_string(most_networks) + " networks");
  std::vector<MatchedNetwork> out;
  for (const auto& item : list) {
    FieldReader reader(item, "suite", path);
    MatchedNetwork network;
    std::string by;
    reader.text("model", network.model);
    reader.whole("width", network.width, 1, int64_t{1} << 32);
    reader.text("by", by);
    reader.real("target", network.target, kLeastMatch, kMaxMatch);
    reader.real("size", network.size, 0, kMaxMatch);
    const auto size = parse_matched_size(by);
    if (!size) throw bad_input("suite", path + ": expected params, state or flops, got '" + printable(by) + "'");
    network.by = *size;
    out.push_back(std::move(network));
  }
  return out;
}

std::string freeze_suite(const std::string& folder, const Suite& suite) {
  Json runs = Json::array();
  std::set<std::string> automata;
  for (const auto& run : suite.runs) {
    std::string beside;
    if (const auto& automaton = run.values.grammar.file) {
      beside = "automaton-" + automaton->sha256 + ".json";
      if (automata.insert(beside).second) replace_file((fs::path(folder) / beside).string(), automaton->text);
    }
    runs.push_back({{"run_id", run.run_id}, {"toml", config_toml(run, false, beside)}});
  }
  Json document = {{"schema", frozen_schema},
                   {"name", suite.name},
                   {"select", suite.select},
                   {"average", suite.average},
                   {"matched", networks_json(suite.matched)},
                   {"runs", std::move(runs)}};
  const std::string path = (fs::path(folder) / frozen_name).string();
  replace_file(path, sealed_json(json_document(document, 2)));
  return path;
}

bool is_frozen_suite(const std::string& path) {
  return fs::path(path).filename() == frozen_name;
}

Suite read_frozen_suite(const std::string& path, const std::vector<std::string>& ids, const ModelRules& rules) {
  const std::string text = read_file(path, kMaxFrozenBytes);
  if (!is_sealed(text)) throw bad_input("suite", printable(path, 400) + ": SHA-256 mismatch");
  const nlohmann::json document = parse_bounded(text, kMaxFrozenBytes, "suite", path);
  if (document.value("schema", nlohmann::json()) != frozen_schema)
    throw bad_input("suite",
                    printable(path, 400) + ": written by another version of this program; submit the suite again");
  Suite suite;
  suite.name = text_of(document, "name", path);
  suite.select = texts_of(document, "select", path);
  suite.average = texts_of(document, "average", path);
  suite.matched = parse_networks(document.value("matched", nlohmann::json()), path);
  const auto runs = document.find("runs");
  if (runs == document.end() || !runs->is_array())
    throw bad_input("suite", printable(path, 400) + ": expected a list of runs");
  const std::set<std::string> wanted(ids.begin(), ids.end());
  ConfigFiles files;  // read once for all runs
  for (const auto& item : *runs) {
    const std::string id = text_of(item, "run_id", path);
    if (!wanted.empty() && !wanted.contains(id)) continue;
    ResolvedConfig run = resolve(parse_settings(text_of(item, "toml", path), path, rules.shipped), rules, path, &files);
    if (run.run_id != id)
      throw bad_input("suite", printable(path, 400) + ": expected run " + printable(id) + ", got " + run.run_id +
                                   ": written by another version of this program; submit the suite again");
    suite.runs.push_back(std::move(run));
  }
  if (suite.runs.empty()) throw bad_input("suite", printable(path, 400) + ": expected runs of these ids, got none");
  return suite;
}

}  // namespace sb
