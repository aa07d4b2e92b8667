#include "config/data.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/config_file.h"
#include "config/task_schedule.h"

namespace sb {

namespace {

// Runs `act` for the stage that begins with this update; faults name the schedule.
template <class Act>
auto at_stage(int64_t first, const Act& act) {
  try {
    return act();
  } catch (const Error& error) {
    if (error.code() != Exit::bad_input) throw;
    throw stage_error(first, error);
  }
}

std::vector<TrainingStage> make_stages(const RunConfig& config, const Task& configured,
                                       const std::function<void()>& poll) {
  std::vector<TrainingStage> out;
  if (config.train.schedule.empty()) return out;
  const TaskShape wanted = configured.shape();
  for (const auto& [first, stage] : config_stages(config)) {
    at_stage(first, [&, &first = first, &stage = stage] {
      out.push_back({first, make_stage(configured, task_setup(stage), poll)});
      out.back().task->check_split(Split::train);
    });
    const TaskShape shape = out.back().task->shape();
    if (shape.channels != wanted.channels || shape.answers != wanted.answers)
      throw bad_input("train.schedule", "update " + std::to_string(first) + ": expected the task's " +
                                            std::to_string(wanted.channels) + " channels and " +
                                            std::to_string(wanted.answers) + " answers, got " +
                                            std::to_string(shape.channels) + " and " + std::to_string(shape.answers));
  }
  return out;
}

}  // namespace

const std::shared_ptr<const Task>& RunData::train_task(int64_t update) const {
  const auto after = std::upper_bound(stages.begin(), stages.end(), update,
                                      [](int64_t u, const TrainingStage& stage) { return u < stage.first; });
  return after == stages.begin() ? task : std::prev(after)->task;
}

int RunData::max_train_frames() const {
  int most = task->max_frames(Split::train);
  for (const auto& stage : stages) most = std::max(most, stage.task->max_frames(Split::train));
  return most;
}

TaskSetup task_setup(const RunConfig& config) {
  const GrammarSection& grammar = config.grammar;
  TaskSetup out;
  out.kind = config.task.kind;
  out.seed = grammar.build.seed;
  out.length = config.task.length;
  out.keys = config.task.keys;
  out.files = config.task.files;
  out.grammar = grammar.build;
  // Shares ownership of the file, which contains the automaton.
  if (grammar.file) out.automaton = std::shared_ptr<const Automaton>(grammar.file, &grammar.file->automaton);
  out.stream = config.task.stream;
  out.gaps = config.task.task;
  return out;
}

RunData make_data(const RunConfig& config, const std::function<void()>& poll) {
  if (!config.grammar.file && !config.grammar.automaton.empty())
    throw bad_input("grammar.automaton", "the automaton file has not been read");
  RunData data;
  data.task = make_task(task_setup(config), poll);
  data.stages = make_stages(config, *data.task, poll);
  if (config.quirks.select_on_test) data.select = Split::test;
  return data;
}

std::string data_identity(const RunConfig& config) {
  std::string out;
  const auto add = [&](const std::string& name, const std::string& text) { out += name + " = " + text + "\n"; };
  for (const ConfigKey& key : config_keys())
    if (key.section == "task" || key.section == "grammar") add(key.name(), json_text(key.get(config)));
  for (const auto& [key, value] : config.task.keys) add("task." + key, json_text(config_value(value)));
  for (const auto& [key, file] : config.task.files) add("sha256 of task." + key, file->sha256);
  if (config.grammar.file) add("sha256 of grammar.automaton", config.grammar.file->sha256);
  add("points", joined(config.eval.points, ","));
  if (!config.train.schedule.empty()) {
    add("schedule", schedule_text(config.train.schedule));
    add("updates", std::to_string(config.train.updates));
  }
  return out;
}

TaskSize size_of_task(const RunConfig& config, std::span<const int> points) {
  TaskSize out = task_size(task_setup(config), points);
  if (config.train.schedule.empty()) return out;
  const std::vector<ConfigStage> stages = config_stages(config);
  double frames = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    const int64_t end = i + 1 < stages.size() ? stages[i + 1].first : config.train.updates;
    const TaskSize size = at_stage(stages[i].first, [&] { return task_size(task_setup(stages[i].config)); });
    frames += static_cast<double>(end - stages[i].first) * size.train_frames;
    out.max_train_frames = std::max(out.max_train_frames, size.max_train_frames);
  }
  out.train_frames = frames / static_cast<double>(config.train.updates);
  return out;
}

}  // namespace sb
