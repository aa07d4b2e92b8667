#include "runs/suite.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t largest_file = size_t{1} << 20;
constexpr size_t most_runs = 100000;
constexpr size_t most_faults = 100;  // shown
constexpr size_t most_seen = 1000;   // values a condition remembers

// One choice of an axis: the settings it makes.
using Choice = Settings;
using Axis = std::vector<Choice>;

struct Condition {
  struct Wanted {
    std::string text;  // spelled one way
    Place place;
    bool met = false;  // by some run
  };
  std::string name;
  Place key;
  std::vector<Wanted> any_of;
  std::set<std::string> seen;  // what runs have instead
  bool unclear = false;        // some run's value could not be read
};

struct Override {
  std::vector<Condition> when;
  Settings set;
  bool skip = false;
  bool broken = false;  // a condition could not be read: it never applies
};

Error fault(const std::string& where, const std::string& what, const Place& place) {
  return bad_input(where, what + ", " + place.text());
}

class SuiteReader {
 public:
  SuiteReader(const std::string& path, const std::vector<std::string>& overrides, const ModelRules& rules)
      : path_(path), folder_(fs::path(path).parent_path().string()), rules_(rules) {
    for (const auto& assignment : overrides) add_override(command_line_, assignment);
    take_faults(command_line_);
  }

  Suite read(std::string_view text) {
    const TomlValue document = parse_toml(text, path_);
    TomlValue::Table sections;
    for (const auto& member : *document.table()) {
      attempt([&] {
        if (member.key == "suite") {
          suite_section(member.value);
        } else if (member.key == "grid") {
          grid_section(member.value);
        } else if (member.key == "override") {
          override_blocks(member.value);
        } else {
          check_section_name(member);
          sections.push_back(member);
        }
      });
    }
    add_settings(base_, sections, folder_);
    take_faults(base_);
    expand();
    return std::move(suite_);
  }

 private:
  template <class Act>
  void attempt(const Act& act) {
    try {
      act();
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;
      file_faults_.push_back(error.what());
    }
  }

  void take_faults(Settings& settings) {
    file_faults_.insert(file_faults_.end(), settings.faults.begin(), settings.faults.end());
    settings.faults.clear();
  }

  Settings settings_of(const TomlValue& sections) {
    Settings settings;
    if (!sections.table()) throw fault("suite", "expected a table of section.key = value", sections.place);
    add_settings(settings, *sections.table(), folder_);
    take_faults(settings);
    return settings;
  }

  void check_section_name(const TomlMember& member) const {
    std::vector<std::string> names = section_names();
    if (std::find(names.begin(), names.end(), member.key) != names.end()) return;
    names.insert(names.end(), {"suite", "grid", "override"});
    throw fault("suite", fmt::format("unknown section '{}'{}", printable(member.key), did_you_mean(member.key, names)),
                member.place);
  }

  void suite_section(const TomlValue& value) {
    if (!value.table()) throw fault("suite", "expected a section [suite]", value.place);
    for (const auto& member : *value.table()) attempt([&] { suite_key(member); });
  }

  void suite_key(const TomlMember& member) {
    if (member.key == "select" || member.key == "average") return axis_keys(member);
    if (member.key != "name" && member.key != "base")
      throw fault("suite",
                  fmt::format("unknown key '{}'{}", printable(member.key),
                              did_you_mean(member.key, {"name", "base", "select", "average"})),
                  member.place);
    const auto* text = member.value.text();
    if (!text) throw fault("suite." + member.key, "expected text, got " + shown(member.value), member.value.place);
    if (member.key == "name") suite_.name = *text;
    if (member.key == "base") read_base(*text, member.value.place);
  }

  void axis_keys(const TomlMember& member) {
    const bool select = member.key == "select";
    const auto* items = member.value.list();
    if (!items)
      throw fault("suite." + member.key, "expected a list of keys, got " + shown(member.value), member.value.place);
    for (const auto& item : *items) {
      attempt([&] {
        const auto* key = item.text();
        if (!key) throw fault("suite." + member.key, "expected a key, got " + shown(item), item.place);
        const std::string wrong = axis_fault(*key, rules_.switches, select);
        if (!wrong.empty()) throw fault("suite." + member.key, wrong, item.place);
        auto& keys = select ? suite_.select : suite_.average;
        if (std::find(keys.begin(), keys.end(), *key) == keys.end()) keys.push_back(*key);
      });
    }
    for (const auto& key : suite_.select)
      if (std::find(suite_.average.begin(), suite_.average.end(), key) != suite_.average.end())
        throw fault("suite." + member.key, "expected a key once, got " + printable(key) + " in select and average",
                    member.place);
  }

  void read_base(const std::string& name, const Place& place) {
    base_.whole = false;
    const std::string target = named_file(folder_, name, rules_.shipped);
    std::error_code ignored;
    if (!fs::is_regular_file(target, ignored)) throw fault("suite.base", "no file '" + printable(name) + "'", place);
    base_ = read_settings(fs::path(target).lexically_normal().string(), rules_.shipped);
    take_faults(base_);
  }

  // An axis is `section.key = [values]` or `name = [{section.key = value, …}, …]`.
  void grid_section(const TomlValue& value) {
    if (!value.table()) throw fault("grid", "expected a section [grid]", value.place);
    std::vector<std::pair<Place, Axis>> axes;
    for (const auto& member : *value.table())
      attempt([&] {
        if (const auto* items = member.value.list()) {
          Axis axis;
          for (const auto& item : *items) attempt([&] { axis.push_back(settings_of(item)); });
          if (!axis.empty() || items->empty()) axes.emplace_back(member.place, std::move(axis));
          return;
        }
        if (!member.value.table()) throw fault("grid", "expected a list of values", member.value.place);
        for (const auto& key : *member.value.table())
          attempt([&] { axes.emplace_back(key.place, key_axis(member, key)); });
      });
    std::stable_sort(axes.begin(), axes.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.line, a.first.column) < std::pair(b.first.line, b.first.column);
    });
    for (auto& [place, axis] : axes) {
      const Place& where = place;
      if (axis.empty())
        attempt([&] { throw fault("grid", "expected a list of at least one value", where); });
      else
        axes_.push_back(std::move(axis));
    }
  }

  Axis key_axis(const TomlMember& section, const TomlMember& key) {
    const auto* items = key.value.list();
    if (!items) throw fault("grid", "expected a list of values, got " + shown(key.value), key.value.place);
    Axis axis;
    for (const auto& item : *items) {
      Choice choice;
      add_settings(choice, {{section.key, section.place, {TomlValue::Table{{key.key, key.place, item}}, item.place}}},
                   folder_);
      // A name that is none is one fault, however many values it has.
      for (const auto& line : choice.faults)
        if (std::find(file_faults_.begin(), file_faults_.end(), line) == file_faults_.end())
          file_faults_.push_back(line);
      choice.faults.clear();
      axis.push_back(std::move(choice));
    }
    return axis;
  }

  void override_blocks(const TomlValue& value) {
    if (!value.list()) throw fault("override", "expected blocks [[override]]", value.place);
    for (const auto& block : *value.list()) attempt([&] { override_block(block); });
  }

  void override_block(const TomlValue& block) {
    if (!block.table()) throw fault("override", "expected blocks [[override]]", block.place);
    Override rule;
    bool acts = false;
    for (const auto& member : *block.table()) {
      const size_t before = file_faults_.size();
      attempt([&] {
        if (member.key == "when") {
          conditions(member.value, rule.when);
        } else if (member.key == "set") {
          acts = !member.value.table() || !member.value.table()->empty();
          rule.set = settings_of(member.value);
        } else if (member.key == "skip" && std::holds_alternative<bool>(member.value.content)) {
          rule.skip = std::get<bool>(member.value.content);
        } else {
          throw fault("override",
                      fmt::format("unknown key '{}', expected when, set or skip = true", printable(member.key)),
                      member.place);
        }
      });
      rule.broken |= member.key != "set" && file_faults_.size() > before;
    }
    if (!acts && !rule.skip) attempt([&] { throw fault("override", "expected set or skip = true", block.place); });
    rules_of_suite_.push_back(std::move(rule));
  }

  // Each value must be one that the parameter can have, so that a misspelt condition is an error and not a no-op.
  void conditions(const TomlValue& value, std::vector<Condition>& out) {
    for (const auto& [name, setting] : settings_of(value)) {
      Condition condition{name, setting.key, {}, {}};
      const ConfigKey* parameter = find_config_key(name);
      const auto* list = setting.value.list();
      const bool any = list && !(parameter && parameter->kind == ConfigKey::Kind::wholes);
      const std::string& key = name;
      for (const auto& item : any ? *list : TomlValue::List{setting.value})
        attempt([&] { condition.any_of.push_back({spelled(key, item), item.place}); });
      out.push_back(std::move(condition));
    }
  }

  static std::string spelled(const std::string& name, const TomlValue& value) {
    const ConfigKey* parameter = find_config_key(name);
    return parameter ? toml_text(parse_value(*parameter, value)) : switch_text(name.substr(name.find('.') + 1), value);
  }

  // What the settings so far give `name`: a value nobody set is its default, or follows from others; nothing for a
  // switch that is not set.
  static std::optional<std::string> value_now(const std::string& name, const Settings& settings) {
    const auto found = settings.find(name);
    if (found != settings.end()) return spelled(name, found->second.value);
    const ConfigKey* parameter = find_config_key(name);
    if (!parameter) return std::nullopt;
    return toml_text(parameter->get(tentative_values(settings)));
  }

  // `mark`: remember what was met and seen.
  static bool holds(Condition& condition, const Settings& settings, bool mark) {
    std::optional<std::string> now;
    try {
      now = value_now(condition.name, settings);
    } catch (const Error&) {
      condition.unclear = true;  // the run itself says what is wrong with it
    }
    if (!now) return false;
    bool met = false;
    for (auto& wanted : condition.any_of) {
      if (wanted.text != *now) continue;
      met = true;
      wanted.met |= mark;
    }
    if (mark && condition.seen.size() < most_seen) condition.seen.insert(*now);
    return met;
  }

  // False where one of them takes the combination out.
  bool apply_overrides(Settings& settings, bool mark) {
    for (auto& rule : rules_of_suite_) {
      bool all = !rule.broken;
      for (auto& condition : rule.when) all &= holds(condition, settings, mark);
      if (!all) continue;
      if (rule.skip) return false;
      merge(settings, rule.set);
    }
    return true;
  }

  static void merge(Settings& settings, const Settings& more) {
    for (const auto& [name, setting] : more) settings.insert_or_assign(name, setting);
  }

  // Nothing where an override takes the combination out. Conditions see the command line, but are asked of the file as
  // it stands whether any run meets them.
  std::optional<Settings> combination(size_t number) {
    Settings settings = base_;
    for (size_t i = axes_.size(); i-- > 0;) {
      merge(settings, axes_[i][number % axes_[i].size()]);
      number /= axes_[i].size();
    }
    Settings asked = settings;
    const bool kept = apply_overrides(settings, true);
    for (const auto& [name, setting] : settings) keys_.insert(name);
    if (command_line_.empty()) return kept ? std::optional(settings) : std::nullopt;
    merge(asked, command_line_);
    if (!apply_overrides(asked, false)) return std::nullopt;
    merge(asked, command_line_);
    return asked;
  }

  // Values and keys of conditions that no run has, each with the nearest that one has.
  void check_conditions() {
    std::vector<std::string> keys(keys_.begin(), keys_.end());
    for (const auto& key : rules_.switches) keys.push_back("model." + key);
    for (const auto& rule : rules_of_suite_)
      for (const auto& condition : rule.when) {
        if (condition.unclear) continue;
        if (condition.seen.empty()) {
          const bool known = std::find(keys.begin(), keys.end(), condition.name) != keys.end();
          const std::string hint = known ? "" : did_you_mean(condition.name, keys);
          note("[override] no run has " + printable(condition.name) + hint + ", " + condition.key.text());
          continue;
        }
        for (const auto& wanted : condition.any_of)
          if (!wanted.met)
            note(fmt::format("[override] no run has {} = {}, the nearest is {}, {}", condition.name,
                             printable(wanted.text), nearest_of(wanted.text, condition.seen), wanted.place.text()));
      }
  }

  static std::string nearest_of(const std::string& wanted, const std::set<std::string>& seen) {
    const auto number = parse_finite(wanted);
    const auto distance = [&](const std::string& text) {
      const auto value = number ? parse_finite(text) : std::nullopt;
      return value ? std::abs(*value - *number) : 1e300 + 1e298 * static_cast<double>(edit_distance(text, wanted));
    };
    return printable(*std::min_element(seen.begin(), seen.end(),
                                       [&](const auto& a, const auto& b) { return distance(a) < distance(b); }));
  }

  void note(const std::string& lines) {
    for (size_t from = 0; from <= lines.size();) {
      const size_t end = std::min(lines.find('\n', from), lines.size());
      const std::string line = lines.substr(from, end - from);
      if (faults_[line]++ == 0) order_.push_back(line);
      from = end + 1;
    }
  }

  void refuse(size_t runs) const {
    std::vector<std::string> lines = file_faults_;
    for (const auto& line : order_) {
      const bool of_runs = runs > 1 && !line.starts_with("[override] no run has");
      lines.push_back(of_runs ? fmt::format("{} ({} of {} runs)", line, faults_.at(line), runs) : line);
    }
    if (lines.empty()) return;
    const size_t more = lines.size() > most_faults ? lines.size() - most_faults : 0;
    lines.resize(lines.size() - more);
    if (more > 0)
      lines.push_back(
          fmt::format("[suite] {} more {}, {}", more, more == 1 ? "fault" : "faults", Place{path_, 1, 1}.text()));
    throw Error(Exit::bad_input, fmt::format("{}", fmt::join(lines, "\n")));
  }

  // What tells a combination from the run it came to: the values that are no part of the run.
  void add_merged(size_t kept, const ResolvedConfig& again) {
    ++suite_.merged;
    const auto named = [](const ResolvedConfig& run) { return run.values.run.label; };
    auto& names = suite_.names[kept];
    if (names.empty()) names.push_back(named(suite_.runs[kept]));
    names.push_back(named(again));
  }

  void expand() {
    size_t count = 1;
    for (const auto& axis : axes_) {
      count *= axis.size();
      if (count > most_runs) {
        attempt([&] { throw fault("grid", fmt::format("more than {} runs", most_runs), Place{path_, 1, 1}); });
        return refuse(0);
      }
    }
    std::unordered_map<std::string, size_t> seen;  // places of runs by id
    AutomatonFiles files;
    for (size_t i = 0; i < count; ++i) {
      try {
        const auto settings = combination(i);
        if (!settings) {
          ++suite_.skipped;
          continue;
        }
        ResolvedConfig run = resolve(*settings, rules_, path_, &files);
        const auto [known, fresh] = seen.emplace(run.run_id, suite_.runs.size());
        if (fresh)
          suite_.runs.push_back(std::move(run));
        else
          add_merged(known->second, run);
      } catch (const Error& error) {
        if (error.code() != Exit::bad_input) throw;
        note(error.what());
      }
    }
    if (count > suite_.skipped) check_conditions();
    refuse(count - suite_.skipped);
    if (suite_.runs.empty()) throw fault("suite", "no run is left", Place{path_, 1, 1});
  }

  std::string path_, folder_;
  Settings command_line_;
  std::vector<std::string> file_faults_;
  const ModelRules& rules_;
  Settings base_;
  std::vector<Axis> axes_;
  std::vector<Override> rules_of_suite_;
  std::set<std::string> keys_;            // that some run sets
  std::map<std::string, size_t> faults_;  // runs by line
  std::vector<std::string> order_;        // of the lines
  Suite suite_;
};

}  // namespace

std::string axis_fault(const std::string& key, const std::vector<std::string>& switches, bool select) {
  static const std::set<std::string> never = {"model.name", "task.number", "grammar.seed",    "train.seed",
                                              "run.seed",   "run.label",   "train.precision", "train.device"};
  const ConfigKey* parameter = find_config_key(key);
  std::vector<std::string> known;
  for (const auto& name : switches) known.push_back("model." + name);
  if (!parameter && std::find(known.begin(), known.end(), key) == known.end()) {
    for (const auto& p : config_keys()) known.push_back(p.name());
    return fmt::format("unknown key '{}'{}", printable(key), did_you_mean(key, known));
  }
  const bool trains = key.starts_with("model.") || key.starts_with("train.");
  if (never.contains(key) || (select && !trains) || (parameter && !parameter->identifies))
    return fmt::format("expected {}, got {}",
                       select ? "a key of [model] or [train] that is no seed, name, precision or device"
                              : "a key that tells runs apart and is no seed, name, precision or device",
                       key);
  if (!select && (key == "task.objective" || key.starts_with("model.") || key.starts_with("quirks.")))
    return fmt::format("expected a key of [grammar], [task], [train] or [eval] whose runs measure alike, got {}", key);
  if (!select && (key == "train.lr" || key == "train.warmup"))
    return fmt::format("expected a key that is not selected over, got {}", key);
  return "";
}

Suite parse_suite(std::string_view text, const std::string& path, const std::vector<std::string>& overrides,
                  const ModelRules& rules) {
  return SuiteReader(path, overrides, rules).read(text);
}

Suite read_suite(const std::string& path, const std::vector<std::string>& overrides, const ModelRules& rules) {
  const std::string text = read_text(path, largest_file, "suite", {path, 1, 1});
  return parse_suite(text, path, overrides, rules);
}

std::vector<std::string> Suite::merged_lines() const {
  constexpr size_t most_lines = 5, most_names = 8;
  std::vector<std::string> lines;
  size_t unnamed_runs = 0, unnamed = 0;
  for (const auto& [run, words] : names) {
    const std::set<std::string> different(words.begin(), words.end());
    if (different.size() < 2 || lines.size() >= most_lines) {
      ++unnamed_runs;
      unnamed += words.size();
      continue;
    }
    std::string labels;
    size_t said = 0;
    for (const auto& word : words)
      if (said++ < most_names) labels += (said > 1 ? ", " : "") + (word.empty() ? "(none)" : printable(word, 40));
    lines.push_back(
        fmt::format("{} combinations are one run: labels {}{}", words.size(), labels, said > most_names ? ", …" : ""));
  }
  if (unnamed > 0)
    lines.push_back(fmt::format("{} {}combinations are {} run{} in other words", unnamed, lines.empty() ? "" : "more ",
                                unnamed_runs == 1 ? "one" : std::to_string(unnamed_runs),
                                unnamed_runs == 1 ? "" : "s"));
  return lines;
}

bool is_suite(const std::string& path) {
  const TomlValue document = parse_toml(read_text(path, largest_file, "config", {path, 1, 1}), path);
  return std::any_of(document.table()->begin(), document.table()->end(), [](const TomlMember& member) {
    return member.key == "suite" || member.key == "grid" || member.key == "override";
  });
}

std::string value_text(const ResolvedConfig& run, const std::string& key) {
  if (const ConfigKey* parameter = find_config_key(key)) {
    const ConfigValue value = parameter->get(run.values);
    const auto* text = std::get_if<std::string>(&value);
    return text ? *text : toml_text(value);
  }
  const auto found = run.values.model.switches.find(key.substr(key.find('.') + 1));
  return found == run.values.model.switches.end() ? "" : found->second;
}

namespace {

// Keys that some run's files give, in the order of the schema, switches after the parameters of [model].
std::vector<std::string> given_keys(const std::vector<ResolvedConfig>& runs) {
  std::set<std::string> given;
  for (const auto& run : runs)
    for (const auto& [name, origin] : run.origins)
      if (origin.kind == Origin::Kind::given) given.insert(name);
  std::vector<std::string> names;
  for (const auto& section : section_names()) {
    for (const auto& p : config_keys())
      if (p.section == section && given.erase(p.name()) > 0) names.push_back(p.name());
    if (section != "model") continue;
    for (const auto& name : given)
      if (!find_config_key(name)) names.push_back(name);
  }
  return names;
}

bool same_in_all(const std::vector<ResolvedConfig>& runs, const std::string& name) {
  return std::all_of(runs.begin(), runs.end(),
                     [&](const auto& run) { return value_text(run, name) == value_text(runs.front(), name); });
}

}  // namespace

std::vector<std::string> varying_keys(const std::vector<ResolvedConfig>& runs) {
  std::vector<std::string> names = given_keys(runs);
  std::erase_if(names, [&](const std::string& name) { return same_in_all(runs, name); });
  return names;
}

std::string common_toml(const std::vector<ResolvedConfig>& runs) {
  std::string out, section;
  for (const auto& name : given_keys(runs)) {
    if (!same_in_all(runs, name)) continue;
    const std::string key = name.substr(name.find('.') + 1);
    if (name.substr(0, name.find('.')) != section) {
      section = name.substr(0, name.find('.'));
      out += "[" + section + "]\n";
    }
    const ConfigKey* parameter = find_config_key(name);
    const auto& run = runs.front();
    const std::string value = parameter ? toml_text(parameter->get(run.values)) : toml_quoted(value_text(run, name));
    const auto origin = run.origins.find(name);
    out += key + " = " + value + (origin == run.origins.end() ? "" : "  # " + origin->second.text()) + "\n";
  }
  return out;
}

}  // namespace sb
