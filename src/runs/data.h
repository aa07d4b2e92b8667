// The data of a run, built from its config.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "runs/config.h"
#include "tasks/task.h"

namespace sb {

// Created by the only code that knows which language and task a config names.
struct RunData {
  std::shared_ptr<const Language> language;
  std::shared_ptr<const Automaton> automaton;  // the language's automaton; null if it has none
  TaskConfig task_config;
  std::shared_ptr<const Task> task;
  Split select = Split::valid;  // split of the periodic evaluation
};

// `poll` is called now and then and may throw to end the work.
RunData make_data(const RunConfig& config, const std::function<void()>& poll = {});
std::shared_ptr<const Task> make_task(const RunData& data, const TaskConfig& task);  // on the same language
// The task with gaps of `gap` frames on this split: a point of the generalisation grid. The elements with a gap and the
// content of gaps do not change.
TaskConfig with_gap(TaskConfig task, Split split, int gap);

// Expected number of frames of a sample: of the training split, and of the other splits, optionally with another gap
// length.
double training_frames(const RunConfig& config);
double test_frames(const RunConfig& config, std::optional<int> gap = {});

// Input and output sizes of the network, known without building the automaton.
struct NetworkEnds {
  int64_t inputs = 0, outputs = 0;
};
NetworkEnds network_ends(const RunConfig& config);

}  // namespace sb
