// Which device's runs a suite means where they are worked on by other machines.
#pragma once
#include <functional>

#include "cli/suite_options.h"
#include "runs/suite.h"

namespace sb::cli {

// The suite as `read` has it with one or the other for a device "auto": the one that --gpus says, or that was
// submitted last, or that the folder has more runs of, or that `rules` have; they have that one then.
Suite suite_for_elsewhere(const SuiteOptions& options, ModelRules& rules,
                          const std::function<Suite(const ModelRules&)>& read);

}  // namespace sb::cli
