// Options of `suite` and `experiments run`.
#pragma once
#include <string>
#include <vector>

#include "jobs/slurm_options.h"

namespace sb {

struct SuiteOptions {
  std::string command = "suite";  // name of the command in messages
  std::string root, table = "table", time_limit;
  std::vector<std::string> overrides, where, reuse;
  int jobs = 0, threads = 0, gpus = 0;
  bool list = false, status = false;
  bool table_only = false, no_table = false;
  SlurmOptions slurm;

  // True if nothing is run here: the runs and their device may belong to another machine.
  bool elsewhere() const { return list || status || table_only || slurm.submit; }
};

}  // namespace sb
