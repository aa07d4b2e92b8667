#include "cli/run_sizes.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cli/shipped.h"
#include "config/data.h"
#include "models/declare.h"
#include "train/trainer.h"

namespace sb::cli {

Size size_of(const ResolvedConfig& run) {
  try {
    const TaskSize task = size_of_task(run.values);
    const Cost c = cost(network_config(run.values, task.channels, task.answers),
                        std::max<int64_t>(1, std::llround(task.train_frames)));
    return {c.parameters, c.training_flops()};
  } catch (const Error&) {
    return {};  // the run itself will report the error
  }
}

CostTable shipped_costs() {
  return CostTable::shipped(shipped_folder(), [](const MeasuredRate& row) {
    const ModelConfig model = model_config(row.model, row.width, {}, row.layers, row.inputs, row.outputs);
    return cost(model, std::llround(row.frames)).training_flops();
  });
}

}  // namespace sb::cli
