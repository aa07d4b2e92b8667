// A task as Python holds it: the config and its data.
#pragma once
#include "config/data.h"
#include "native/config.h"
#include "store/result.h"

namespace sb::python {

struct PyTask {
  std::shared_ptr<const Config> config;
  RunData data;
  std::optional<int> point;  // value of the test axis (gap length), if it replaces the task's own distribution

  const Task& task() const { return *data.task; }
  const TaskRow& row() const { return find_task(config->resolved.values.task.kind); }
  std::optional<TestPoint> test_point() const {
    return point ? std::optional(TestPoint{row().axis->name, *point}) : std::nullopt;
  }
};

}  // namespace sb::python
