// The device of a suite whose runs are done on other machines.
#pragma once
#include <functional>

#include "jobs/suite_options.h"
#include "suites/suite.h"

namespace sb {

// Reads the suite with train.device = "auto" resolved for the machine that runs it, not for this one. The device is
// that of --gpus, else of the last submission, else of most runs in the folder, else of `rules`. With --slurm but
// without --gpus, it is the CPU. Changes `rules` to this device.
Suite suite_for_elsewhere(const SuiteOptions& options, ModelRules& rules,
                          const std::function<Suite(const ModelRules&)>& read);

}  // namespace sb
