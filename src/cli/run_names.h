// Names of a suite's runs: model, task, seed, and whatever else tells them apart.
#pragma once
#include <string>
#include <vector>

#include "runs/config_file.h"

namespace sb::cli {

// "mamba2, task 1, seed 1, train.lr=0.001"; `varying`: keys as varying_keys() gives them.
std::string run_name(const ResolvedConfig& run, const std::vector<std::string>& varying);

}  // namespace sb::cli
