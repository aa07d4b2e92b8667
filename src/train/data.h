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
// The task with gaps of `gap` frames on this split: a point of the generalisation grid. Which elements have one, and
// what fills it, stays as it is.
TaskConfig with_gap(TaskConfig task, Split split, int gap);

}  // namespace sb
