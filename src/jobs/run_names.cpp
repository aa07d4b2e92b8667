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

// The fewest keys that, with the varying ones of `axes`, distinguish as many runs as all varying keys do.
Keys telling_keys(const std::vector<ResolvedConfig>& runs, const Keys& axes) {
  Keys keys = varying_keys(runs), out;
  std::erase_if(keys, [](const std::string& key) {
    return key == "model.name" || key == "task.kind" || key == "task.number" || key == "run.seed";
  });
  std::set<size_t> all;
  std::set<size_t> of_grid;
  for (size_t i = 0; i < keys.size(); ++i) {
    all.insert(i);
    if (std::find(axes.begin(), axes.end(), keys[i]) != axes.end()) of_grid.insert(i);
  }
  const auto distinct = [&](const std::set<size_t>& chosen) {
    std::set<Keys> names;
    for (const auto& run : runs) {
      Keys name = base_parts(run.values);
      for (const size_t i : of_grid) name.push_back(value_text(run, keys[i]));
      for (const size_t i : chosen) name.push_back(value_text(run, keys[i]));
      names.insert(std::move(name));
    }
    return names.size();
  };
  std::set<size_t> shown = fewest_telling(0, keys.size(), distinct(all), distinct);
  shown.insert(of_grid.begin(), of_grid.end());
  for (const size_t i : shown) out.push_back(keys[i]);
  return out;
}

}  // namespace

std::vector<std::string> run_names(const std::vector<ResolvedConfig>& runs, const std::vector<std::string>& axes) {
  constexpr size_t longest_value = 40;
  const Keys keys = telling_keys(runs, axes);
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
  // run.seed says nothing if other seeds tell the runs apart.
  const bool other_seeds = std::any_of(keys.begin(), keys.end(), [](auto& key) { return key.ends_with(".seed"); });
  if (other_seeds && std::all_of(parts.begin(), parts.end(), [&](auto& line) { return line[2] == parts[0][2]; }))
    widths[2] = 0;
  std::vector<std::string> names;
  for (const auto& line : parts) {
    std::string name;
    for (size_t i = 0; i < line.size(); ++i)
      if (widths[i] > 0) name += (i > 0 ? "  " : "") + line[i] + std::string(widths[i] - display_width(line[i]), ' ');
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
