#include "suites/suite.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"
#include "config/automaton_file.h"
#include "config/task_keys.h"
#include "suites/suite_file.h"

namespace sb {
namespace {

constexpr size_t kMaxSuiteBytes = size_t{1} << 20;
constexpr size_t most_runs = 100000;
constexpr size_t most_faults = 100;  // shown
constexpr size_t most_seen = 1000;   // values a condition remembers

std::string spelled(const TomlValue& value) {
  const auto* items = value.list();
  if (!items) return shown(value);
  std::string out;
  for (const auto& item : *items) out += (out.empty() ? "" : ", ") + shown(item);
  return "[" + out + "]";
}

// Every combination of the axes, resolved and checked.
class Expansion {
 public:
  Expansion(SuiteFile file, const std::string& path, Settings command_line, const ModelRules& rules)
      : file_(std::move(file)), path_(path), command_line_(std::move(command_line)), rules_(rules) {
    suite_.name = file_.name;
    suite_.select = file_.select;
    suite_.average = file_.average;
  }

  Suite suite() {
    expand();
    return std::move(suite_);
  }

 private:
  Error fault(const std::string& where, const std::string& what) const {
    return bad_input(where, what + ", " + Place{path_, 1, 1}.text());
  }

  // The value of `name` in these settings: as set, or its default or derived value (also for device "auto"). nullopt
  // for a switch that is not set.
  static std::optional<std::string> value_now(const std::string& name, const Settings& settings,
                                              const ModelRules& rules) {
    static const std::string open = toml_text(std::string(to_string(DeviceKind::automatic)));
    const auto found = settings.find(name);
    if (found != settings.end()) {
      const std::string text = condition_text(name, found->second.value);
      if (name != "train.device" || text != open) return text;
    }
    const RunConfig values = tentative_values(settings, rules);
    if (const ConfigKey* parameter = find_config_key(name)) return toml_text(parameter->get(values));
    const TaskRow& row = find_task(values.task.kind);
    if (!name.starts_with("task.") || !find_own_key(row, name)) return std::nullopt;
    return toml_text(config_value(row.find(name.substr(5))->initial));
  }

  // The value on a machine that differs from this one in having a GPU or not; nullopt for keys that do not depend on
  // this.
  std::optional<std::string> value_elsewhere(const std::string& name, const Settings& settings) const {
    if (name != "train.device" && name != "train.precision") return std::nullopt;
    ModelRules other;
    other.has_gpu = [here = rules_.has_gpu && rules_.has_gpu()] { return !here; };
    return value_now(name, settings, other);
  }

  // Whether the condition is met. `mark`: record values seen and met.
  bool holds(SuiteCondition& condition, const Settings& settings, bool mark) {
    std::optional<std::string> now, elsewhere;
    try {
      now = value_now(condition.name, settings, rules_);
      if (mark) elsewhere = value_elsewhere(condition.name, settings);
    } catch (const Error&) {
      condition.unclear = true;  // the run itself reports the fault
    }
    if (!now) return false;
    bool met = false;
    for (auto& wanted : condition.any_of) {
      if (wanted.text == elsewhere) wanted.met |= mark;
      if (wanted.text != *now) continue;
      met = true;
      wanted.met |= mark;
    }
    if (mark && condition.seen.size() < most_seen) condition.seen.insert(*now);
    return met;
  }

  // Returns false if an override skips the combination.
  bool apply_overrides(Settings& settings, bool mark) {
    for (auto& rule : file_.overrides) {
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

  // nullopt if an override skips the combination. Conditions see the command line; but whether any run meets a
  // condition is judged by the file alone.
  std::optional<Settings> combination(size_t number) {
    Settings settings = file_.base;
    for (size_t i = file_.axes.size(); i-- > 0;) {
      merge(settings, file_.axes[i][number % file_.axes[i].size()]);
      number /= file_.axes[i].size();
    }
    Settings asked = settings;
    const bool kept = apply_overrides(settings, true);
    for (const auto& [name, setting] : settings) keys_.insert(name);
    if (command_line_.empty()) return kept ? std::optional(settings) : std::nullopt;
    merge(asked, command_line_);
    if (!apply_overrides(asked, false)) return std::nullopt;
    merge(asked, command_line_);
    for (const auto& line : silenced_by_automaton(asked, command_line_)) ++idle_[line];
    return asked;
  }

  // Drops keys of gaps that extended files and `base` set for runs of another kind of task, e.g. the grammar of a
  // scale.
  void drop_inherited(Settings& settings) const {
    const auto kind = settings.find("task.kind");
    if (kind == settings.end() || !kind->second.value.text() || *kind->second.value.text() == kGapsKind) return;
    std::erase_if(settings, [&](const auto& entry) {
      const ConfigKey* key = find_config_key(entry.first);
      const std::string& file = entry.second.origin.file;
      return key && key->task_kind == kGapsKind && file != path_ && file != kind->second.origin.file &&
             !command_line_.contains(entry.first);
    });
  }

  size_t targets() const { return file_.match ? file_.match->sizes.size() : 1; }

  double target(size_t number) const {
    for (const auto& axis : file_.axes) number /= axis.size();
    return file_.match->sizes[number];
  }

  // Sets the width (and d_state, if it is searched, too) of the network nearest to the requested size.
  void solve(Settings& settings, size_t number, ConfigFiles& files) {
    const SuiteTargets& match = *file_.match;
    if (const auto given = settings.find("model.width"); given != settings.end())
      throw bad_input("suite.match",
                      "cannot be combined with model.width, which it determines, " + given->second.origin.text());
    RunConfig values = tentative_values(settings, rules_);
    SizeFound found;
    try {
      if (auto& grammar = values.grammar; !grammar.automaton.empty()) {
        auto& file = files.automata[grammar.automaton];
        if (!file) file = read_automaton_file(grammar.automaton, settings.at("grammar.automaton").value.place);
        grammar.file = file;
      }
      for (const TaskKey& key : find_task(values.task.kind).keys)
        if (key.file) read_task_file(values.task, key.name, settings, path_, files);
      found = rules_.match(values, {*match.by, target(number), match.step});
    } catch (const Error& error) {
      resolve(settings, rules_, path_, &files);  // reports a fault of the model itself first
      throw Error(error.code(), std::string(error.what()) + ", " + match.place.text());
    }
    const auto put = [&](const std::string& key, int64_t value) {
      settings.insert_or_assign(key, Setting{{value, match.place}, match.place, match.place});
    };
    put("model.width", found.width);
    if (found.d_state) put("model.d_state", *found.d_state);
    const MatchedNetwork network{values.model.name, found.width, *match.by, target(number), found.size};
    auto& known = suite_.matched;
    if (std::find(known.begin(), known.end(), network) == known.end()) known.push_back(network);
  }

  // Reports keys and values of conditions that no run has, with the nearest existing one.
  void check_conditions() {
    std::vector<std::string> keys(keys_.begin(), keys_.end());
    for (const auto& key : rules_.switches) keys.push_back("model." + key);
    for (const auto& rule : file_.overrides)
      for (const auto& condition : rule.when) {
        if (condition.unclear || rule.inherited) continue;
        if (condition.seen.empty()) {
          const bool known = std::find(keys.begin(), keys.end(), condition.name) != keys.end();
          const std::string hint = known ? "" : did_you_mean(condition.name, keys);
          condition_faults_.push_back("[override] no run has " + printable(condition.name) + hint + ", " +
                                      condition.key.text());
          continue;
        }
        for (const auto& wanted : condition.any_of)
          if (!wanted.met)
            condition_faults_.push_back(formatted("[override] no run has {} = {}, the nearest is {}, {}",
                                                  condition.name, printable(wanted.text),
                                                  nearest_of(wanted.text, condition.seen), wanted.place.text()));
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
    std::vector<std::string> lines = file_.faults;
    for (const auto& line : order_)
      lines.push_back(runs > 1 ? formatted("{} ({} of {} runs)", line, faults_.at(line), runs) : line);
    lines.insert(lines.end(), condition_faults_.begin(), condition_faults_.end());
    if (lines.empty()) return;
    const size_t more = lines.size() > most_faults ? lines.size() - most_faults : 0;
    lines.resize(lines.size() - more);
    if (more > 0)
      lines.push_back(
          formatted("[suite] {} more {}, {}", more, more == 1 ? "fault" : "faults", Place{path_, 1, 1}.text()));
    throw Error(Exit::bad_input, joined(lines, "\n"));
  }

  size_t choice(size_t number, size_t axis) const {
    for (size_t i = file_.axes.size(); --i > axis;) number /= file_.axes[i].size();
    return number % file_.axes[axis].size();
  }

  // Names the combinations that resolved to one run by their choices on the axes on which they differ.
  void name_merged() {
    for (const auto& [run, numbers] : merged_) {
      auto& names = suite_.names[run];
      names.resize(numbers.size());
      for (size_t i = 0; file_.match && i < numbers.size(); ++i)
        if (target(numbers[i]) != target(numbers[0]) || target(numbers.back()) != target(numbers[0]))
          names[i] = "match_target = " + shortest(target(numbers[i]));
      for (size_t axis = 0; axis < file_.axes.size(); ++axis) {
        const auto chosen = [&](size_t number) { return choice(number, axis); };
        if (std::all_of(numbers.begin(), numbers.end(),
                        [&, &numbers = numbers](size_t number) { return chosen(number) == chosen(numbers[0]); }))
          continue;
        for (size_t i = 0; i < numbers.size(); ++i)
          for (const auto& [key, setting] : file_.axes[axis][chosen(numbers[i])])
            names[i] += (names[i].empty() ? "" : ", ") + key + " = " + spelled(setting.value);
      }
    }
  }

  // Of an axis of several keys, those of task and model name its choices; training settings often follow from them.
  void name_axes() {
    std::vector<std::string>& out = suite_.axes;
    for (const auto& axis : file_.axes)
      for (const auto& choice : axis)
        for (const auto& [key, setting] : choice)
          if ((choice.size() == 1 || key.starts_with("task.") || key.starts_with("model.")) &&
              std::find(out.begin(), out.end(), key) == out.end())
            out.push_back(key);
  }

  // Reports keys that two axes set, since only one could take effect.
  void check_axes() {
    std::map<std::string, std::pair<size_t, Place>> owner;
    for (size_t axis = 0; axis < file_.axes.size(); ++axis)
      for (const auto& choice : file_.axes[axis])
        for (const auto& [name, setting] : choice) {
          const auto& [first, place] = owner.try_emplace(name, axis, setting.key).first->second;
          const std::string line = formatted("[grid] {}, expected on one axis, got it on another at {}, {}", name,
                                             place.text(), setting.key.text());
          if (first != axis && std::find(file_.faults.begin(), file_.faults.end(), line) == file_.faults.end())
            file_.faults.push_back(line);
        }
  }

  void expand() {
    check_axes();
    name_axes();
    size_t count = targets();
    for (const auto& axis : file_.axes) {
      count *= axis.size();
      if (count > most_runs) {
        file_.faults.push_back(fault("grid", formatted("more than {} runs", most_runs)).what());
        return refuse(0);
      }
    }
    std::unordered_map<std::string, size_t> seen;  // places of runs by id
    std::vector<size_t> number_of;                 // the combination that a run was made from
    ConfigFiles files;
    for (size_t i = 0; i < count; ++i) {
      try {
        auto settings = combination(i);
        if (!settings) {
          ++suite_.skipped;
          continue;
        }
        drop_inherited(*settings);
        if (file_.match && file_.faults.empty()) solve(*settings, i, files);
        ResolvedConfig run = resolve(*settings, rules_, path_, &files);
        const auto [known, fresh] = seen.emplace(run.run_id, suite_.runs.size());
        if (fresh) {
          suite_.runs.push_back(std::move(run));
          number_of.push_back(i);
        } else {
          auto& numbers = merged_[known->second];
          if (numbers.empty()) numbers.push_back(number_of[known->second]);
          numbers.push_back(i);
          ++suite_.merged;
        }
      } catch (const Error& error) {
        if (error.code() != Exit::bad_input) throw;
        note(error.what());
      }
    }
    // A command-line setting without effect on some runs is a fault only if it has no effect on any run.
    for (const auto& [line, runs] : idle_)
      if (runs == count - suite_.skipped &&
          std::find(file_.faults.begin(), file_.faults.end(), line) == file_.faults.end())
        file_.faults.push_back(line);
    if (count > suite_.skipped) check_conditions();
    refuse(count - suite_.skipped);
    if (suite_.runs.empty()) throw fault("suite", "no run is left");
    name_merged();
  }

  SuiteFile file_;
  std::string path_;
  Settings command_line_;
  const ModelRules& rules_;
  std::set<std::string> keys_;                    // keys that some run sets
  std::map<std::string, size_t> faults_;          // number of runs with each fault
  std::vector<std::string> order_;                // faults in order of occurrence
  std::vector<std::string> condition_faults_;     // conditions of overrides that no run meets
  std::map<std::string, size_t> idle_;            // number of runs on which a command-line override has no effect
  std::map<size_t, std::vector<size_t>> merged_;  // combinations by the run that they resolved to
  Suite suite_;
};

}  // namespace

Suite parse_suite(std::string_view text, const std::string& path, const std::vector<std::string>& overrides,
                  const ModelRules& rules, const SuiteChoice& choice) {
  Settings command_line;
  add_overrides(command_line, overrides);
  SuiteFile file = parse_suite_file(text, path, rules, choice);
  file.faults.insert(file.faults.begin(), command_line.faults.begin(), command_line.faults.end());
  command_line.faults.clear();
  return Expansion(std::move(file), path, std::move(command_line), rules).suite();
}

Suite read_suite(const std::string& path, const std::vector<std::string>& overrides, const ModelRules& rules,
                 const SuiteChoice& choice) {
  return parse_suite(read_text(path, kMaxSuiteBytes, "suite", {path, 1, 1}), path, overrides, rules, choice);
}

bool is_suite(std::string_view text, const std::string& path) {
  const TomlValue document = parse_toml(text, path);
  return std::any_of(document.table()->begin(), document.table()->end(), [](const TomlMember& member) {
    return member.key == "suite" || member.key == "grid" || member.key == "override";
  });
}

}  // namespace sb
