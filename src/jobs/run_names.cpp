#include "jobs/run_names.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "report/labels.h"
#include "report/names.h"
#include "store/run_files.h"
#include "suites/suite.h"

namespace sb {
namespace {

using Keys = std::vector<std::string>;

Keys base_parts(const RunConfig& config) {
  return {config.model.name, "task " + task_name(config.task), "seed " + std::to_string(config.run.seed)};
}

// "lr", or "train.batch" since eval has a batch, too; switches without "model.".
std::string name_of(const std::string& key) {
  return find_config_key(key) ? short_name(key) : key.substr(key.find('.') + 1);
}

// The fewest keys that distinguish as many runs as all varying keys do.
Keys telling_keys(const std::vector<ResolvedConfig>& runs) {
  Keys keys = varying_keys(runs), out;
  std::erase_if(keys, [](const std::string& key) {
    return key == "model.name" || key == "task.kind" || key == "task.number" || key == "run.seed";
  });
  std::set<size_t> all;
  for (size_t i = 0; i < keys.size(); ++i) all.insert(i);
  const auto distinct = [&](const std::set<size_t>& chosen) {
    std::set<Keys> names;
    for (const auto& run : runs) {
      Keys name = base_parts(run.values);
      for (const size_t i : chosen) name.push_back(value_text(run, keys[i]));
      names.insert(std::move(name));
    }
    return names.size();
  };
  for (const size_t i : fewest_telling(0, keys.size(), distinct(all), distinct)) out.push_back(keys[i]);
  return out;
}

}  // namespace

std::vector<std::string> run_names(const std::vector<ResolvedConfig>& runs) {
  constexpr size_t longest_value = 40;
  const Keys keys = telling_keys(runs);
  std::vector<Keys> parts;
  std::vector<size_t> widths(3 + keys.size(), 0);
  for (const auto& run : runs) {
    parts.push_back(base_parts(run.values));
    for (const auto& key : keys) {
      const std::string value = value_text(run, key);
      parts.back().push_back(value.empty() ? "" : name_of(key) + " " + printable(value, longest_value));
    }
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], display_width(parts.back()[i]));
  }
  std::vector<std::string> names;
  for (const auto& line : parts) {
    std::string name;
    for (size_t i = 0; i < line.size(); ++i)
      name += (i > 0 ? "  " : "") + line[i] + std::string(widths[i] - display_width(line[i]), ' ');
    name.erase(name.find_last_not_of(' ') + 1);
    names.push_back(std::move(name));
  }
  return names;
}

std::string kept_label(const ResolvedConfig& config, const std::string& folder, const RunTree& tree) {
  const std::string kept = load_result(folder, tree).label, asked = config.values.run.label;
  if (kept == asked) return "";
  return "note: the run is finished and keeps its label '" + printable(kept) + "', not '" + printable(asked) + "', " +
         printable(folder, 400);
}

}  // namespace sb
