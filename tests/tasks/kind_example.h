#pragma once
#include <map>
#include <string>

#include "tasks/task_registry.h"

namespace sb::test {

// A task with its default keys but these.
inline std::shared_ptr<const Task> example(const std::string& kind, int length,
                                           const std::map<std::string, TaskValue>& keys = {}) {
  TaskSetup setup;
  setup.kind = kind;
  setup.seed = 7;
  setup.length = length;
  for (const TaskKey& key : find_task(kind).keys) setup.keys[key.name] = key.initial;
  for (const auto& [key, value] : keys) setup.keys[key] = value;
  return make_task(setup);
}

}  // namespace sb::test
