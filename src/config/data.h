// The data of a run, built from its config.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "config/config.h"
#include "tasks/task_registry.h"

namespace sb {

struct RunData {
  std::shared_ptr<const Task> task;
  Split select = Split::valid;  // split of the periodic evaluation
};

// `poll` is called now and then and may throw to end the work.
RunData make_data(const RunConfig& config, const std::function<void()>& poll = {});

// Everything from which the run's task is made.
TaskSetup task_setup(const RunConfig& config);
// Sizes of the task, computed without making the task. `point`: value of the test axis on the test split.
TaskSize size_of_task(const RunConfig& config, std::optional<int> point = {});

}  // namespace sb
