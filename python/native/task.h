// A task as Python holds it: the config and its data.
#pragma once
#include "native/config.h"
#include "runs/data.h"

namespace sb::python {

struct PyTask {
  std::shared_ptr<const Config> config;
  RunData data;
  std::optional<int> gap;  // fixed length of every test gap, if it replaces the task's distribution

  const Task& task() const { return *data.task; }
};

}  // namespace sb::python
