// Names of a suite's runs: model, task, seed, and whatever else tells them apart.
#pragma once
#include <string>
#include <vector>

#include "runs/config_file.h"

namespace sb::cli {

// Keys ("train.lr", "model.d_state") whose values differ between the runs, in the order of documentation. Values that
// only follow from others are left out, and model, task and seed, which every name has.
std::vector<std::string> varying_keys(const std::vector<ResolvedConfig>& runs);
// "mamba2, task 1, seed 1, train.lr=0.001"
std::string run_name(const ResolvedConfig& run, const std::vector<std::string>& varying);

}  // namespace sb::cli
