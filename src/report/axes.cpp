#include "report/axes.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "runs/json_fields.h"
#include "runs/schema.h"
#include "runs/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t largest_record = size_t{1} << 20;
constexpr size_t most_suites = 1000;

struct Recorded {
  std::string name;
  std::vector<std::string> select, average;
};

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

// Empty where there is no such file.
std::vector<Recorded> read_record(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  if (!fs::is_regular_file(path, ignored)) throw bad_input("suite", "expected a file, " + printable(path, 400));
  const std::string text = read_file(path, largest_record);
  if (!is_sealed(text)) throw bad_input("suite", printable(path, 400) + ": its bytes do not fit its sha256");
  const nlohmann::json parsed = parse_bounded(text, largest_record, "suite", path);
  const auto suites = parsed.find("suites");
  if (suites == parsed.end() || !suites->is_array()) throw bad_input("suite", path + ": expected a list of suites");
  std::vector<Recorded> out;
  for (const auto& entry : *suites) {
    const auto name = entry.is_object() ? entry.find("name") : entry.end();
    if (!entry.is_object() || name == entry.end() || !name->is_string())
      throw bad_input("suite", path + ": expected suites with a name");
    out.push_back({name->get<std::string>(), texts_of(entry, "select", path), texts_of(entry, "average", path)});
  }
  return out;
}

}  // namespace

void Axes::add_select(const std::string& key) {
  add_once(select, key);
}
void Axes::add_average(const std::string& key) {
  add_once(average, key);
}

std::string config_key(const std::string& axis) {
  if (!axis.starts_with("model.") || axis.starts_with("model.switch ") || find_parameter(axis)) return axis;
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

void record_suite(const std::string& root, const Suite& suite) {
  const std::string path = path_of(root);
  std::vector<Recorded> all;
  try {
    all = read_record(path);
  } catch (const Error&) {
    all.clear();  // damaged: written anew
  }
  std::erase_if(all, [&](const Recorded& each) { return each.name == suite.name; });
  if (all.size() >= most_suites) all.erase(all.begin());
  all.push_back({suite.name, suite.select, suite.average});
  std::sort(all.begin(), all.end(), [](const Recorded& a, const Recorded& b) { return a.name < b.name; });
  JsonWriter json;
  json.begin_object().key("suites").begin_array();
  for (const auto& each : all)
    json.begin_object()
        .member("name", each.name)
        .array("select", each.select)
        .array("average", each.average)
        .end_object();
  const std::string content = sealed_json(json.end_array().end_object().text());
  write_file_atomically(path, content);
}

Axes recorded_axes(const std::string& root, std::vector<std::string>& notes) {
  Axes axes;
  try {
    for (const auto& suite : read_record(path_of(root)))
      for (const bool select : {true, false})
        for (const auto& key : select ? suite.select : suite.average) {
          const std::string known = key.starts_with("model.") ? key.substr(6) : "";  // switches are not checked here
          const std::string fault = axis_fault(key, {known}, select);
          const std::string told = "as suite '" + printable(suite.name) + "' says";
          if (!fault.empty()) {
            notes.push_back("not used, " + told + ": " + fault);
            continue;
          }
          select ? axes.add_select(key) : axes.add_average(key);
          notes.push_back((select ? "selected over " : "averaged over ") + printable(key) + " too, " + told);
        }
  } catch (const Error& error) {
    notes.push_back("not used: " + printable(error.what(), 1000));
    return {};
  }
  return axes;
}

}  // namespace sb
