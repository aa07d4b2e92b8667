// A task as Python holds it: the config, and what it is drawn from.
#pragma once
#include "native/config.h"
#include "runs/data.h"

namespace sb::python {

struct PyTask {
  std::shared_ptr<const Config> config;
  RunData data;
  std::optional<int> gap;  // frames of every test gap, where it is not the task's own law

  const Task& task() const { return *data.maker; }
};

}  // namespace sb::python
