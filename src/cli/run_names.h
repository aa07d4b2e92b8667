// Names of runs for people: model, task, seed, and the fewest further keys that tell the runs of a suite apart.
#pragma once
#include <string>
#include <vector>

#include "config/config_file.h"

namespace sb::cli {

// A name for each: "mamba2  task 1  seed 1  lr 0.001". Parts are padded, so that names align below each other.
std::vector<std::string> run_names(const std::vector<ResolvedConfig>& runs);

}  // namespace sb::cli
