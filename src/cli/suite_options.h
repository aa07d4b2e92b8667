// What `suite` and `experiments run` are asked for.
#pragma once
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/slurm_options.h"

namespace sb::cli {

struct SuiteOptions {
  std::string command = "suite";  // for messages about its options
  std::string root, table = "table", time_limit;
  std::vector<std::string> overrides, where, have;
  int jobs = 0, threads = 0, gpus = 0;
  bool list = false, status = false;
  bool table_only = false, no_table = false;
  SlurmOptions slurm;
  double start = 0;  // seconds until this process began to work

  // Nothing is worked on here: the runs, and their device, may be another machine's.
  bool elsewhere() const { return list || status || table_only || slurm.submit; }
};

// --set --where --have --out --jobs --gpus --time-limit --list --status --table-only --no-table --threads
void add_suite_options(Arguments& arguments, SuiteOptions& options, const std::string& root = "runs");
// What can be refused before anything is read: a file in the place of the folder of runs, no such time, no such cards.
void check_options(const SuiteOptions& options);

}  // namespace sb::cli
