// Options of `--slurm`. Values that become lines of a job script are checked; `--sbatch` passes options to sbatch as
// they are.
#pragma once
#include <string>
#include <vector>

namespace sb {

struct SlurmOptions {
  std::string command = "suite";  // name of the command in messages
  bool submit = false;            // --slurm
  bool dry_run = false;           // show only what would be submitted
  bool requeue = false;
  std::string partition, account, memory, time, signal;
  std::vector<std::string> sbatch;  // further options, one argument of sbatch each
  int cpus = 4, per_task = 1, max_parallel = 0;
};

// Throws bad_input for values that a script cannot hold as data, and for options of sbatch that the suite sets itself.
void check_slurm_values(const SlurmOptions& options);

bool is_letter_or_digit(char c);  // of ASCII

// Converts "90", "30:00", "2:00:00", "1-12", "1-12:30" or "1-12:30:00" to seconds; throws bad_input.
double parse_slurm_time(const std::string& text, const std::string& where);
// Seconds before the time limit at which runs are asked to save.
double notice_of(const SlurmOptions& options);

}  // namespace sb
