#include "report/labels.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "config/config_file.h"
#include "report/names.h"
#include "report/select.h"

namespace sb {
namespace {

using Keys = std::vector<std::string>;
const std::string absent = "–";

Keys values_of(const Group& group, const Keys& keys) {
  Keys out;
  for (const auto& key : keys) out.push_back(group.value(key));
  return out;
}

bool in_column(const std::string& key) {
  return key.starts_with("grammar.") || key.starts_with("task.");
}

// Whether the key is absent because only tasks of another kind have it.
bool is_foreign(const Group& group, const std::string& key) {
  if (!in_column(key) || !group.value(key).empty()) return false;
  return !parse_integer(group.value("task.number")) || !find_config_key(key);
}

// Keys that are always in row labels, even if the model or the column determines their value.
bool always_in_row(const std::string& key) {
  static const std::set<std::string> keys = {
      "run.label",    "quirks",         "model.width",           "train.precision",
      "train.device", "train.schedule", "train.position_stretch"};
  return keys.contains(key);
}

// Order of labels: model, label and quirks first, then the order of documentation, then all other keys.
std::pair<size_t, std::string> rank(const std::string& key) {
  static const Keys first = {"model.name", "run.label", "quirks", "task.number", "task.objective"};
  const auto it = std::find(first.begin(), first.end(), key);
  if (it != first.end()) return {static_cast<size_t>(it - first.begin()), key};
  const auto& all = config_keys();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].name() == key) return {first.size() + i, key};
  return {first.size() + all.size(), key};
}

// Points of a test axis are columns themselves.
bool is_axis(const std::string& key) {
  const auto& rows = task_registry();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const TaskRow& row) { return row.axis && key == "eval." + row.axis->key; });
}

class Labeller {
 public:
  Labeller(const std::vector<Group>& groups, const SwitchDefaults& defaults) : groups_(groups), defaults_(defaults) {
    std::set<std::string> keys = {"model.name", "task.number"};
    for (const auto& group : groups_)
      for (const auto& [key, value] : group.config) keys.insert(key);
    for (const auto& key : keys) {
      auto& values = values_[key];
      for (const auto& group : groups_) values.insert(group.value(key));
      if (values.size() > 1) out_.varying.push_back(key);
    }
    std::sort(out_.varying.begin(), out_.varying.end(),
              [](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  }

  Labels run() {
    split();
    bundle(row_keys_, out_.rows);
    bundle(column_keys_, out_.columns);
    name_scales(groups_, out_.columns);
    share();
    out_.row_names = row_names(groups_, out_);
    return std::move(out_);
  }

 private:
  bool decided(const std::string& key, const Keys& by) const {
    std::map<Keys, std::string> seen;
    for (const auto& group : groups_) {
      const std::string value = group.value(key);
      if (seen.emplace(values_of(group, by), value).first->second != value) return false;
    }
    return true;
  }

  void split() {
    row_keys_ = {"model.name"};
    column_keys_ = {"task.number"};
    bool width = false;
    Keys data;
    for (const auto& [key, values] : values_)
      if (in_column(key)) data.push_back(key);
    for (const auto& key : out_.varying) {
      if (key == "model.name" || key == "task.number") continue;
      if (in_column(key)) {
        if (!decided(key, {"task.number"})) column_keys_.push_back(key);
      } else if (always_in_row(key)) {
        row_keys_.push_back(key);
        width |= key == "model.width";
      } else if ((key.starts_with("model.") || !decided(key, data)) && !decided(key, told_by(key))) {
        row_keys_.push_back(key);
      }
    }
    if (!width && values_.contains("model.width")) row_keys_.push_back("model.width");
    // How often a run is evaluated changes nothing that a table shows.
    if (const Keys rest = without(row_keys_, "eval.every");
        rest.size() < row_keys_.size() && cells(rest) == cells(row_keys_))
      row_keys_ = rest;
    std::sort(row_keys_.begin(), row_keys_.end(),
              [](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  }

  // Keys that may determine the value of this key, which then needs no column. For an MLP the width does not count: if
  // sizes are matched, it follows from the MLP.
  static Keys told_by(const std::string& key) {
    if (key.ends_with("mlp")) return {"model.name"};
    return {"model.name", "model.width"};
  }

  static Keys without(Keys keys, const std::string& key) {
    std::erase(keys, key);
    return keys;
  }

  // The number of places in the table that groups have by these keys of rows and by the columns.
  size_t cells(const Keys& row_keys) const {
    std::set<std::pair<Keys, Keys>> out;
    for (const auto& group : groups_) out.emplace(values_of(group, row_keys), values_of(group, column_keys_));
    return out.size();
  }

  bool as_by_default(const std::string& key) const {
    return std::all_of(groups_.begin(), groups_.end(), [&](const Group& group) {
      const std::string task = group.value("task.number");
      const ConfigMap& defaults = default_settings(task);
      const auto it = defaults.find(key);
      return group.value(key) == (it == defaults.end() ? "" : it->second);
    });
  }

  // nullopt if the model's defaults are not known.
  std::optional<bool> switch_by_default(const Group& group, const std::string& key) {
    if (!defaults_) return std::nullopt;
    const std::pair of(group.model(), group.value("model.width"));
    const auto [known, fresh] = switches_.try_emplace(of);
    if (fresh) known->second = defaults_(of.first, parse_integer(of.second).value_or(0));
    const auto found = known->second.find(key.substr(13));
    return found == known->second.end() ? std::nullopt : std::optional(found->second == plain_value(group.value(key)));
  }

  // Compares a switch with its model's default or, if that is not known, with the paper's network. A switch that no
  // model of the paper has is listed if all groups have it.
  bool switch_as_usual(const std::string& key) {
    bool known = false, absent_somewhere = false;
    for (const auto& group : groups_) {
      const std::string value = group.value(key);
      std::optional<bool> same;
      if (!value.empty()) same = switch_by_default(group, key);
      if (!value.empty() && !same) same = is_paper_switch(group.model(), key.substr(13), value);
      if (same == false) return false;
      known |= same.has_value();
      absent_somewhere |= value.empty();
    }
    return known || absent_somewhere;
  }

  void share() {
    // The line on protocols already names a residual that differs from the protocol's.
    static const std::set<std::string> shown = {"model.name", "model.width", "model.residual", "task.number",
                                                "run.label"};
    for (const auto& [key, values] : values_) {
      const bool one_switch = key.starts_with("model.switch ");
      const bool in_label = values.size() > 1 && (std::count(row_keys_.begin(), row_keys_.end(), key) > 0 ||
                                                  std::count(column_keys_.begin(), column_keys_.end(), key) > 0);
      if (shown.contains(key) || is_axis(key) || in_label || key.starts_with("config.") ||
          values.size() - (one_switch ? values.count("") : 0) != 1)
        continue;
      if (!(one_switch ? switch_as_usual(key) : as_by_default(key))) out_.common.emplace_back(key, *values.rbegin());
    }
    const auto place = [](const std::string& key) {
      return std::pair(key == "quirks" ? 0 : key.starts_with("model.switch ") ? 1 : 2, rank(key));
    };
    std::sort(out_.common.begin(), out_.common.end(),
              [&](const auto& a, const auto& b) { return place(a.first) < place(b.first); });
  }

  // As few digits of real numbers as tell the values apart; 17 tell all.
  static int digits_that_tell(const Keys& values) {
    for (const int digits : {4, 6}) {
      std::set<std::string> texts;
      for (const auto& value : values) texts.insert(shown_value(value, digits));
      if (texts.size() == values.size()) return digits;
    }
    return 17;
  }

  std::map<std::string, std::string> texts_of(const std::string& key) const {
    Keys values(values_.at(key).begin(), values_.at(key).end());
    std::sort(values.begin(), values.end(), less_value);
    std::map<std::string, std::string> out;
    std::set<std::string> taken;
    const int digits = digits_that_tell(values);
    for (const auto& value : values) {
      std::string text = shown_value(value, digits);
      const std::string stem = text;
      for (int i = 2; !taken.insert(text).second; ++i) text = formatted("{} ({})", stem, i);
      out[value] = text;
    }
    return out;
  }

  // Numbers the groups by their value of this key.
  std::vector<size_t> partition(const std::string& key) const {
    std::map<std::string, size_t> number;
    std::vector<size_t> out;
    for (const auto& group : groups_) out.push_back(number.emplace(group.value(key), number.size()).first->second);
    return out;
  }

  static bool joins(const std::string& key, const std::map<std::string, std::string>& texts) {
    static const std::set<std::string> alone = {"model.name", "task.number", "run.label", "quirks"};
    return !alone.contains(key) && std::all_of(texts.begin(), texts.end(), [](const auto& each) {
      return each.second.find_first_of("/ \\") == std::string::npos;
    });
  }

  void bundle(const Keys& keys, std::vector<LabelAxis>& axes) const {
    std::map<std::pair<std::string, std::vector<size_t>>, size_t> known;
    for (const auto& key : keys) {
      auto texts = texts_of(key);
      const bool may_join = values_.at(key).size() > 1 && joins(key, texts);
      const std::string section = key.substr(0, key.find('.'));
      const auto [at, fresh] = known.emplace(std::pair(may_join ? section : key, partition(key)), axes.size());
      if (fresh) axes.emplace_back();
      LabelAxis& axis = axes[at->second];
      axis.keys.push_back(key);
      axis.names.push_back(short_name(key));
      axis.shown.push_back(std::move(texts));
    }
  }

  const std::vector<Group>& groups_;
  const SwitchDefaults& defaults_;
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>> switches_;  // by model and width
  std::map<std::string, std::set<std::string>> values_;
  Keys row_keys_, column_keys_;
  Labels out_;
};

}  // namespace

std::string LabelAxis::name() const {
  if (!together.empty()) return "scale";
  return joined(names, "/");
}

std::vector<std::string> LabelAxis::values(const Group& group) const {
  return values_of(group, keys);
}

std::string LabelAxis::text(const Group& group) const {
  if (!together.empty()) return together.at(values(group));
  Keys parts;
  for (size_t i = 0; i < keys.size(); ++i) parts.push_back(shown[i].at(group.value(keys[i])));
  return joined(parts, "/");
}

std::vector<std::string> LabelAxis::lines(const Group& group) const {
  if (!together.empty()) return {together.at(values(group))};
  Keys parts;
  for (size_t i = 0; i < keys.size(); ++i)
    if (!is_foreign(group, keys[i])) parts.push_back(names[i] + " " + shown[i].at(group.value(keys[i])));
  return parts;
}

std::vector<std::string> Labels::row_values(const Group& group) const {
  Keys out;
  for (const auto& axis : rows)
    for (const auto& value : axis.values(group)) out.push_back(value);
  return out;
}

std::vector<std::string> Labels::column_values(const Group& group) const {
  Keys out;
  for (const auto& axis : columns)
    for (const auto& value : axis.values(group)) out.push_back(value);
  return out;
}

std::vector<std::string> Labels::column_lines(const Group& group) const {
  Keys out;
  for (const auto& axis : columns)
    for (const auto& line : axis.lines(group)) out.push_back(line);
  return out;
}

std::string Labels::row_name(const Group& group) const {
  return row_names.at(row_values(group));
}

std::string Labels::name(const Group& group) const {
  return row_name(group) + ", " + joined(column_lines(group), ", ");
}

bool Labels::everywhere(const std::string& key) const {
  return std::find(varying.begin(), varying.end(), key) == varying.end();
}

Labels make_labels(const std::vector<Group>& groups, const SwitchDefaults& defaults) {
  return Labeller(groups, defaults).run();
}

std::string everywhere_line(const Labels& labels, std::vector<std::string> first) {
  constexpr size_t most = 10;
  for (const auto& [key, value] : labels.common)
    if (!key.starts_with("eval."))
      first.push_back(short_name(key) + " " + shown_value(value) +
                      (labels.everywhere(key) ? "" : " (models that have it)"));
  if (first.empty()) return "";
  const size_t more = first.size() > most ? first.size() - most : 0;
  first.resize(first.size() - more);
  return formatted("Everywhere: {}{}.", joined(first, ", "),
                   more > 0 ? formatted(" and {} more setting{}", more, more == 1 ? "" : "s") : "");
}

const ConfigMap& default_settings(const std::string& task_number) {
  static const auto tasks = [] {
    std::map<std::string, ConfigMap> all;
    const auto add = [&](const std::string& name, const std::string& setting) {
      ResolvedConfig config;  // not checked: the files of a kind are not known
      config.values = tentative_values(parse_settings("[task]\n" + setting + "\n", "task"));
      config.keys_without_effect = idle_keys(config.values);
      all[name] = config_map(canonical_json(config, {}));
    };
    for (int n = 0; n <= 4; ++n) add(std::to_string(n), formatted("number = {}", n));
    for (const auto& kind : task_kinds())
      if (kind != kGapsKind) add(kind, formatted("kind = \"{}\"", kind));
    return all;
  }();
  const auto task = tasks.find(plain_value(task_number));
  return task == tasks.end() ? tasks.at("1") : task->second;
}

std::string short_name(const std::string& key) {
  if (key == "model.name") return "model";
  if (key == "task.number") return "task";
  if (key.starts_with("model.switch ")) return printable(key.substr(13));
  const ConfigKey* parameter = find_config_key(key);
  if (!parameter) return printable(key.starts_with("task.") ? key.substr(5) : key);
  size_t same = 0;
  for (const auto& p : config_keys()) same += p.key == parameter->key;
  return same == 1 ? parameter->key : key;
}

std::string shown_value(const std::string& value, int digits) {
  if (value.empty()) return absent;
  if (!value.starts_with('"')) {
    const auto number = value.find_first_of(".e") == std::string::npos ? std::nullopt : parse_finite(value);
    return number && digits < 17 ? formatted("{:.{}g}", *number, digits) : printable(value, 80);
  }
  const std::string plain = plain_value(value);
  const bool bare = !plain.empty() && plain.size() <= 120 && plain.front() != ' ' && plain.back() != ' ' &&
                    plain.find("  ") == std::string::npos;
  return bare ? plain : "'" + plain.substr(0, 120) + "'";
}

std::vector<std::string> point_lines(const Point& point) {
  Keys out;
  if (point.at) out.push_back(formatted("{} {}", point.axis.empty() ? "gap" : printable(point.axis), *point.at));
  if (!point.split.empty()) out.push_back(formatted("{}, {} samples", printable(point.split), point.samples));
  if (!point.computed.empty()) out.push_back(formatted("computed on {}", printable(point.computed)));
  return out;
}

}  // namespace sb
