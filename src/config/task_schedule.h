// train.schedule: numeric keys of [task] that move over the updates, from a first value to their configured value.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "config/toml_tree.h"

namespace sb {

struct ConfigDraft;

// Values change this many times per key, so that a run has few tasks and a GPU few shapes.
constexpr int kScheduleSteps = 32;

// {task.gap_max = {from = 10, over = 0.5}}, as a table or as text. Throws bad_input "[train.schedule] …, file:line:col"
// unless the value has this form; whether the task has such keys is checked by check_schedule().
TaskSchedule parse_schedule(const TomlValue& value);
std::string schedule_text(const TaskSchedule& schedule);  // the same as TOML, sorted by key

// Removes keys that start at their configured value.
void derive_schedule(ConfigDraft& draft);
// Every key is a number that training reads, its first value is in range, and the task is valid at every stage.
void check_schedule(ConfigDraft& draft);

// The value of a key in this update: linear in kScheduleSteps steps, a pure function of the update.
double scheduled_value(const ScheduledKey& key, double configured, int64_t update, int64_t updates);

// A part of the training during which no key changes.
struct ConfigStage {
  int64_t first = 0;  // update
  RunConfig config;   // with the values of these updates, without a schedule
};
// The fault of a stage as one of the schedule: "[train.schedule] update 20: task.depth …".
Error stage_error(int64_t first, const Error& fault);
// In order; the first one begins with update 0. One stage if there is no schedule.
std::vector<ConfigStage> config_stages(const RunConfig& config);

}  // namespace sb
