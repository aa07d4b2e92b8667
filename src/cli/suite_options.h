// Options of `suite` and `experiments run`.
#pragma once
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/slurm_options.h"

namespace sb::cli {

struct SuiteOptions {
  std::string command = "suite";  // name of the command in messages
  std::string root, table = "table", time_limit;
  std::vector<std::string> overrides, where, reuse;
  int jobs = 0, threads = 0, gpus = 0;
  bool list = false, status = false;
  bool table_only = false, no_table = false;
  SlurmOptions slurm;
  double start = 0;  // seconds this process took to start

  // True if nothing is run here: the runs and their device may belong to another machine.
  bool elsewhere() const { return list || status || table_only || slurm.submit; }
};

// --set --where --reuse --out --jobs --gpus --time-limit --list --status --table-only --no-table --threads
void add_suite_options(Arguments& arguments, SuiteOptions& options, const std::string& root = "runs");
// Rejects invalid options before anything is read: a file in place of the folder of runs, an invalid time, missing
// GPUs.
void check_options(const SuiteOptions& options);

}  // namespace sb::cli
