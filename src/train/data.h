// What a run trains and is tested on, built from its config.
#pragma once
#include <memory>

#include "runs/config.h"
#include "tasks/batch.h"

namespace sb {

struct RunData {
  std::shared_ptr<const Sampler> sampler;
  TaskConfig task;
  std::shared_ptr<const BatchMaker> maker;
  Split test = Split::test;     // `reference` under the quirk test_in_train
  Split select = Split::valid;  // what periodic evaluation looks at
};

RunData make_data(const RunConfig& config);
// The task with every test element followed by `gap` frames: a point of the generalisation grid.
TaskConfig with_test_gap(TaskConfig task, int gap);

}  // namespace sb
