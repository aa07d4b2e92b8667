// The device of a suite whose runs are done on other machines.
#pragma once
#include <functional>

#include "jobs/suite_options.h"
#include "suites/suite.h"

namespace sb {

// Reads the suite with the device that "auto" stands for elsewhere. The device is that of --gpus, or of the last
// submission, or of most runs in the folder, or of `rules`. Changes `rules` to this device.
Suite suite_for_elsewhere(const SuiteOptions& options, ModelRules& rules,
                          const std::function<Suite(const ModelRules&)>& read);

}  // namespace sb
