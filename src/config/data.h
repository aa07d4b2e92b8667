// The data of a run, built from its config.
#pragma once
#include <functional>
#include <memory>
#include <span>

#include "config/config.h"
#include "tasks/task_registry.h"

namespace sb {

// The task of the updates from `first` on.
struct TrainingStage {
  int64_t first = 0;
  std::shared_ptr<const Task> task;
};

struct RunData {
  std::shared_ptr<const Task> task;        // as configured: of evaluations, baselines and ceiling
  Split select = Split::valid;             // split of the periodic evaluation
  std::vector<TrainingStage> stages = {};  // of train.schedule; empty: every update trains on `task`

  const std::shared_ptr<const Task>& train_task(int64_t update) const;
  int max_train_frames() const;  // of a sample, over all updates
};

// `poll` is called now and then and may throw to end the work.
RunData make_data(const RunConfig& config, const std::function<void()>& poll = {});

// Equal texts mean equal data, in training and at every test point.
std::string data_identity(const RunConfig& config);

// Everything from which the run's task is made.
TaskSetup task_setup(const RunConfig& config);
// Sizes of the task, also at these points of the test axis. With train.schedule, train_frames is the mean over the
// updates. Builds the task, which can be slow, unless its kind has TaskRow::size: callers should keep the result.
TaskSize size_of_task(const RunConfig& config, std::span<const int> points = {});

}  // namespace sb
