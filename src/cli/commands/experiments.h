// Shared by the commands on experiments.
#pragma once
#include <optional>

#include "jobs/cost_table.h"
#include "suites/experiment.h"

namespace sb::cli {

ModelRules experiment_rules();  // rules of the models, independent of this machine

struct SuiteCost {
  int64_t updates = 0;
  double frames = 0;                               // training frames
  std::optional<double> cpu_seconds, gpu_seconds;  // nullopt if a rate is not known
};
SuiteCost cost_of(const Suite& suite, const CostTable& costs);

class Program;
void add_experiments_queue(Program& program);

}  // namespace sb::cli
