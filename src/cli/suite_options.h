// Arguments of `suite` and `experiments run`.
#pragma once
#include <string>

#include "cli/arguments.h"
#include "jobs/suite_options.h"

namespace sb::cli {

// --set --where --reuse --out --jobs --gpus --time-limit --list --status --table-only --no-table --threads
void add_suite_options(Arguments& arguments, SuiteOptions& options, const std::string& root = "runs");
// Rejects invalid options before anything is read: a file in place of the folder of runs, an invalid time, missing
// GPUs.
void check_options(const SuiteOptions& options);

void add_slurm_options(Arguments& arguments, SlurmOptions& options);
// Throws bad_input for options that require --slurm or cannot be combined with it, and for values that
// check_slurm_values rejects.
void check_slurm_options(const SlurmOptions& options, const Arguments& arguments);

}  // namespace sb::cli
