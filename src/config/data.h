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

// What the task of a run is made from.
TaskSetup task_setup(const RunConfig& config);
// Sizes of the task, known without making it; with this point of its test axis on test.
TaskSize size_of_task(const RunConfig& config, std::optional<int> point = {});

}  // namespace sb
