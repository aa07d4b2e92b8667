#include "config/task_schedule.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"
#include "config/draft.h"

namespace sb {
namespace {

constexpr const char* kScheduleForm = "expected {task.KEY = {from = NUMBER, over = SHARE}}";

Error schedule_fault(const std::string& what, const Place& place) {
  return bad_input("train.schedule", what + ", " + place.text());
}

// 10 or 0.5
std::string number_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? std::to_string(static_cast<int64_t>(value))
                                                              : shortest(value);
}

double schedule_number(const std::string& name, const TomlMember& member) {
  const auto* whole = std::get_if<int64_t>(&member.value.content);
  const auto* real = std::get_if<double>(&member.value.content);
  const double value = whole ? static_cast<double>(*whole) : real ? *real : std::nan("");
  if (!std::isfinite(value))
    throw schedule_fault(formatted("{}.{}, expected a number, got {}", name, member.key, shown(member.value)),
                         member.value.place);
  return value == 0 ? 0 : value;  // -0 and 0 are one value
}

ScheduledKey parse_scheduled(const TomlMember& member) {
  const std::string name = "task." + printable(member.key);
  if (!member.value.table())
    throw schedule_fault(formatted("{}, expected {{from = NUMBER, over = SHARE}}, got {}", name, shown(member.value)),
                         member.value.place);
  ScheduledKey out{member.key, 0, 0};
  std::set<std::string> given;
  for (const auto& part : *member.value.table()) {
    if (part.key != "from" && part.key != "over")
      throw schedule_fault(formatted("{}, unknown key '{}', expected from and over", name, printable(part.key)),
                           part.place);
    (part.key == "from" ? out.from : out.over) = schedule_number(name, part);
    given.insert(part.key);
    if (part.key == "over" && !(out.over > 0 && out.over <= 1))
      throw schedule_fault(
          formatted("{}.over, expected a share of the updates in (0, 1], got {}", name, shown(part.value)),
          part.value.place);
  }
  for (const char* key : {"from", "over"})
    if (!given.contains(key)) throw schedule_fault(formatted("{} lacks {}", name, key), member.place);
  return out;
}

// The number of updates in which the key moves.
int64_t moving_updates(const ScheduledKey& key, int64_t updates) {
  return std::max<int64_t>(1, std::llround(key.over * static_cast<double>(updates)));
}

// The key of [task] that this kind of task reads; nullopt if there is none.
std::optional<ConfigKey> task_key(const RunConfig& config, const std::string& key) {
  const std::string name = "task." + key;
  const ConfigKey* common = find_config_key(name);
  if (common && (common->task_kind.empty() || common->task_kind == config.task.kind)) return *common;
  return find_own_key(find_task(config.task.kind), name);
}

// Numeric keys that change training samples. task.number only sets defaults, and test gaps are not trained on.
bool can_move(const RunConfig& config, const ConfigKey& key) {
  return (key.kind == ConfigKey::Kind::whole || key.kind == ConfigKey::Kind::real) && key.key != "number" &&
         !key.key.starts_with("test_gap_") && !silenced(config, key);
}

std::vector<std::string> movable_keys(const RunConfig& config) {
  std::vector<std::string> out;
  for (const auto& p : config_keys())
    if (p.section == "task" && can_move(config, p)) out.push_back(p.name());
  for (const auto& [kind, p] : own_keys())
    if (kind == config.task.kind && p.section == "task" && can_move(config, p)) out.push_back(p.name());
  return out;
}

double configured_value(const RunConfig& config, const ConfigKey& key) {
  const ConfigValue value = key.get ? key.get(config) : config_value(config.task.keys.at(key.key));
  const auto* whole = std::get_if<int64_t>(&value);
  return whole ? static_cast<double>(*whole) : std::get<double>(value);
}

void set_value(RunConfig& config, const ConfigKey& key, double value) {
  const bool whole = key.kind == ConfigKey::Kind::whole;
  if (key.set) {
    key.set(config, whole ? ConfigValue(static_cast<int64_t>(value)) : ConfigValue(value));
  } else if (whole) {
    config.task.keys[key.key] = static_cast<int64_t>(value);
  } else {
    config.task.keys[key.key] = value;
  }
}

// "" or the fault of one entry.
std::string key_fault(const RunConfig& config, const ScheduledKey& each) {
  const std::string name = "task." + printable(each.key);
  const auto key = task_key(config, each.key);
  const std::vector<std::string> known = movable_keys(config);
  if (!key || std::find(known.begin(), known.end(), key->name()) == known.end()) {
    const std::string hint = key ? "" : did_you_mean("task." + each.key, known);
    return formatted("{} {}{}", name, key ? "cannot be scheduled for this task" : "is not a key of this task",
                     hint.empty() ? ", expected " + join_or(known) : hint);
  }
  const bool whole = key->kind == ConfigKey::Kind::whole;
  const bool inside = whole ? each.from == std::floor(each.from) && each.from >= static_cast<double>(key->least) &&
                                  each.from <= static_cast<double>(key->most)
                            : (key->above_low ? each.from > key->low : each.from >= key->low) &&
                                  (key->below_high ? each.from < key->high : each.from <= key->high);
  if (inside) return "";
  return formatted("{}.from, expected {}, got {}", name, key->range(), number_text(each.from));
}

// "update 20: task.gap …" from "[task.gap] …".
std::string stage_text(int64_t first, const std::string& line) {
  return formatted("update {}: {}{}", first, line.substr(1, line.find(']') - 1), line.substr(line.find(']') + 1));
}

// "" or the fault of a stage; data.cpp reports faults that only the task itself finds.
std::string stage_fault(const ConfigStage& stage) {
  const TaskSection& task = stage.config.task;
  if (task.kind != kGapsKind) return "";
  const GapConfig& gap = task.task.train;
  if (gap.law != GapLaw::none && gap.law != GapLaw::constant && gap.min > gap.max)
    return formatted("update {}: task.gap_min ({}) > task.gap_max ({})", stage.first, gap.min, gap.max);
  try {
    check(task.task);
  } catch (const Error& error) {
    if (error.code() != Exit::bad_input) throw;
    return stage_text(stage.first, error.what());
  }
  if (task.task.train.law != GapLaw::none && task.task.train.start > task.length)
    return formatted("update {}: task.gap_start ({}) > task.length ({})", stage.first, task.task.train.start,
                     task.length);
  return "";
}

// A schedule given as text, as configs in JSON hold it.
TomlValue schedule_table(const std::string& text, const Place& place) {
  try {
    const TomlValue document = parse_toml("schedule = " + text, "");
    if (document.table()->size() == 1) {
      TomlValue table = document.table()->front().value;
      move_place(table, place);
      if (table.table()) return table;
    }
  } catch (const Error&) {  // reported below
  }
  throw schedule_fault(formatted("{}, got '{}'", kScheduleForm, printable(text, 40)), place);
}

}  // namespace

TaskSchedule parse_schedule(const TomlValue& value) {
  if (value.text()) return parse_schedule(schedule_table(*value.text(), value.place));
  TaskSchedule out;
  if (!value.table()) throw schedule_fault(formatted("{}, got {}", kScheduleForm, shown(value)), value.place);
  for (const auto& section : *value.table()) {
    if (section.key != "task" || !section.value.table())
      throw schedule_fault(formatted("{}, got {}", kScheduleForm, printable(section.key)), section.place);
    for (const auto& member : *section.value.table()) out.push_back(parse_scheduled(member));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return out;
}

std::string schedule_text(const TaskSchedule& schedule) {
  std::vector<std::string> members;
  for (const auto& each : schedule) {
    const bool known = each.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string::npos;
    const std::string key = known && !each.key.empty() ? each.key : toml_quoted(each.key);
    members.push_back(
        formatted("task.{} = {{from = {}, over = {}}}", key, number_text(each.from), number_text(each.over)));
  }
  return formatted("{{{}}}", joined(members, ", "));
}

void derive_schedule(ConfigDraft& draft) {
  RunConfig& c = draft.values();
  std::erase_if(c.train.schedule, [&](const ScheduledKey& each) {
    const auto key = task_key(c, each.key);
    return key && can_move(c, *key) && each.from == configured_value(c, *key);
  });
}

void check_schedule(ConfigDraft& draft) {
  const RunConfig& c = draft.values();
  if (c.train.schedule.empty() || !draft.good("task.") || !draft.good("train.updates")) return;
  const size_t before = draft.faults.size();
  const auto refuse = [&](const std::string& fault) {
    draft.refuse_unless(fault.empty(), "train.schedule", fault, {"train.schedule"});
  };
  for (const auto& each : c.train.schedule) refuse(key_fault(c, each));
  if (draft.faults.size() > before) return;
  for (const auto& stage : config_stages(c)) {
    const std::string fault = stage_fault(stage);
    if (!fault.empty()) return refuse(fault);
  }
}

Error stage_error(int64_t first, const Error& fault) {
  return Error(fault.code(), "[train.schedule] " + stage_text(first, fault.what()));
}

double scheduled_value(const ScheduledKey& key, double configured, int64_t update, int64_t updates) {
  const int64_t moving = moving_updates(key, updates);
  if (update >= moving) return configured;
  const auto step = static_cast<double>(update * kScheduleSteps / moving);
  return key.from + (configured - key.from) * step / kScheduleSteps;
}

std::vector<ConfigStage> config_stages(const RunConfig& config) {
  const int64_t updates = config.train.updates;
  std::set<int64_t> firsts = {0};
  for (const auto& each : config.train.schedule) {
    const int64_t moving = moving_updates(each, updates);
    for (int64_t step = 1; step <= kScheduleSteps; ++step)  // the first update of this step
      firsts.insert((step * moving + kScheduleSteps - 1) / kScheduleSteps);
  }
  std::vector<ConfigStage> out;
  std::vector<double> last;
  for (const int64_t first : firsts) {
    if (first >= updates) break;
    ConfigStage stage{first, config};
    stage.config.train.schedule.clear();
    std::vector<double> values;
    for (const auto& each : config.train.schedule) {
      const auto key = task_key(config, each.key);
      if (!key) throw bad_input("train.schedule", "task." + printable(each.key) + " is not a key of this task");
      const double value = scheduled_value(each, configured_value(config, *key), first, updates);
      values.push_back(key->kind == ConfigKey::Kind::whole ? std::round(value) : value);
      set_value(stage.config, *key, values.back());
    }
    if (!out.empty() && values == last) continue;  // rounded to the same integers
    last = std::move(values);
    out.push_back(std::move(stage));
  }
  return out;
}

}  // namespace sb
