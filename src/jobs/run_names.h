// Names of runs for people: model, task, seed, and the fewest further keys that tell the runs of a suite apart.
#pragma once
#include <string>
#include <vector>

#include "config/config_file.h"
#include "store/run_tree.h"

namespace sb {

// A name for each: "mamba2  task 1  seed 1  lr 0.001". Parts are padded, so that names align below each other. Keys of
// `axes` that differ are part of every name.
std::vector<std::string> run_names(const std::vector<ResolvedConfig>& runs, const std::vector<std::string>& axes = {});
// One line if a finished run keeps a label that differs from the config; empty otherwise.
std::string kept_label(const ResolvedConfig& config, const std::string& folder, const RunTree& tree = RunTree::disk());

}  // namespace sb
