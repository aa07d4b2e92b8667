#include "report/names.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/text.h"

namespace sb {
namespace {

using Values = std::vector<std::string>;
using RowsOfModel = std::map<Values, const Group*>;  // by Labels::row_values

// The axes that tell these rows apart; the first is the model.
std::set<size_t> telling_axes(const RowsOfModel& rows, const std::vector<LabelAxis>& axes) {
  return fewest_telling(1, axes.size(), rows.size(), [&](const std::set<size_t>& chosen) {
    std::set<std::vector<Values>> found;
    for (const auto& [values, group] : rows) {
      std::vector<Values> one;
      for (const size_t axis : chosen) one.push_back(axes[axis].values(*group));
      found.insert(std::move(one));
    }
    return found.size();
  });
}

Values quirks_of(const Group& group) {
  const std::string quirks = plain_value(group.value("quirks"));
  return quirks.empty() ? Values{} : split(quirks, ' ');
}

// Quirks that every row has do not distinguish rows.
std::set<std::string> common_quirks(const RowsOfModel& rows) {
  std::map<std::string, size_t> counts;
  for (const auto& [values, group] : rows)
    for (const auto& quirk : quirks_of(*group)) ++counts[quirk];
  std::set<std::string> out;
  for (const auto& [quirk, count] : counts)
    if (count == rows.size()) out.insert(quirk);
  return out;
}

// "bf16", "width 64", "delta off"; empty if the group has no value.
std::string part_of(const LabelAxis& axis, const Group& group, const std::set<std::string>& common) {
  static const std::set<std::string> by_value = {"run.label", "train.precision", "train.device"};
  const std::string& key = axis.keys.front();
  if (group.value(key).empty()) return "";
  if (key == "quirks") {
    Values own;
    for (const auto& quirk : quirks_of(group))
      if (!common.contains(quirk)) own.push_back(quirk);
    return joined(own, " ");
  }
  return by_value.contains(key) ? axis.shown.front().at(group.value(key)) : axis.lines(group).front();
}

// Numbers the groups by these values.
template <class ValueOf>
std::vector<size_t> partition(const std::vector<Group>& groups, const ValueOf& value_of) {
  std::map<Values, size_t> number;
  std::vector<size_t> out;
  for (const auto& group : groups) out.push_back(number.emplace(value_of(group), number.size()).first->second);
  return out;
}

}  // namespace

std::set<size_t> fewest_telling(size_t first, size_t end, size_t most,
                                const std::function<size_t(const std::set<size_t>&)>& distinct) {
  std::set<size_t> chosen;
  while (distinct(chosen) < most) {
    size_t best = 0, reached = 0;
    for (size_t i = first; i < end; ++i) {
      std::set<size_t> more = chosen;
      if (!more.insert(i).second) continue;
      if (const size_t found = distinct(more); found > reached) {
        reached = found;
        best = i;
      }
    }
    chosen.insert(best);
  }
  return chosen;
}

std::string scale_name(const Group& group) {
  std::map<std::string, std::string> config;
  for (const char* key : {"grammar.automaton", "grammar.vocab", "grammar.ambiguities", "grammar.depth", "task.length"})
    config[key] = group.value(key);
  return scale_name(config);
}

std::string scale_name(const std::map<std::string, std::string>& config) {
  struct Named {
    const char *name, *vocab, *ambiguities, *depth, *length;
  };
  static constexpr Named scales[] = {
      {"quick", "13", "12", "12", "40"}, {"small", "21", "20", "20", "200"}, {"paper", "41", "40", "40", "200"}};
  const auto value = [&](const char* key) {
    const auto at = config.find(key);
    return at == config.end() ? std::string() : at->second;
  };
  if (!value("grammar.automaton").empty()) return "";
  for (const auto& scale : scales)
    if (value("grammar.vocab") == scale.vocab && value("grammar.ambiguities") == scale.ambiguities &&
        value("grammar.depth") == scale.depth && value("task.length") == scale.length)
      return scale.name;
  return "";
}

void name_scales(const std::vector<Group>& groups, std::vector<LabelAxis>& columns) {
  const auto axis = std::find_if(columns.begin(), columns.end(), [](const LabelAxis& each) {
    return std::find(each.keys.begin(), each.keys.end(), "grammar.vocab") != each.keys.end();
  });
  if (axis == columns.end()) return;
  std::map<Values, std::string> words;
  std::set<std::string> taken;
  for (const auto& group : groups) {
    const std::string scale = scale_name(group);
    const auto [at, fresh] = words.emplace(axis->values(group), scale);
    if (scale.empty() || at->second != scale || (fresh && !taken.insert(scale).second)) return;
  }
  axis->together = std::move(words);
  const auto by_scale = partition(groups, [&](const Group& group) { return axis->values(group); });
  std::erase_if(columns, [&](const LabelAxis& other) {
    return other.keys == Values{"task.length"} &&
           partition(groups, [&](const Group& group) { return other.values(group); }) == by_scale;
  });
}

std::map<std::vector<std::string>, std::string> row_names(const std::vector<Group>& groups, const Labels& labels) {
  std::map<std::string, RowsOfModel> models;
  for (const auto& group : groups) models[group.model()].emplace(labels.row_values(group), &group);
  std::map<Values, std::string> out;
  for (const auto& [model, rows] : models) {
    const auto axes = telling_axes(rows, labels.rows);
    const auto common = common_quirks(rows);
    std::set<std::string> taken;
    for (const auto& [values, group] : rows) {
      std::string name = model;
      for (const size_t axis : axes)
        if (const std::string part = part_of(labels.rows[axis], *group, common); !part.empty()) name += " · " + part;
      const std::string stem = name;
      for (int i = 2; !taken.insert(name).second; ++i) name = formatted("{} ({})", stem, i);
      out[values] = name;
    }
  }
  return out;
}

}  // namespace sb
