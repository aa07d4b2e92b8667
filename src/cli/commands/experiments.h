// What the commands on experiments share.
#pragma once
#include <optional>

#include "cli/cost_table.h"
#include "runs/experiment.h"

namespace sb::cli {

ModelRules experiment_rules();  // the models', whatever this machine can train

struct SuiteCost {
  int64_t updates = 0;
  double frames = 0;                               // of training
  std::optional<double> cpu_seconds, gpu_seconds;  // nothing where a rate is not known
};
SuiteCost cost_of(const Suite& suite, const CostTable& costs);

class Program;
void add_experiments_queue(Program& program);

}  // namespace sb::cli
