// A suite as jobs of Slurm: what is asked of it, checked, and the scripts that do it.
#pragma once
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace sb::cli {

struct SlurmOptions {
  bool submit = false;   // --slurm
  bool dry_run = false;  // only show what would be submitted
  bool requeue = false;
  std::string partition, account, memory, time, signal;
  std::vector<std::string> raw;  // words for sbatch, each an option with its value
  int cpus = 4, per_task = 1, max_parallel = 0;
};

void add_slurm_options(Arguments& arguments, SlurmOptions& options);
// Throws bad_input for options without --slurm, and for what check_slurm_values refuses.
void check_slurm_options(const SlurmOptions& options, const Arguments& arguments);
// Throws bad_input for what sbatch would not take as the data it is meant to be.
void check_slurm_values(const SlurmOptions& options);

// "90", "30:00", "2:00:00", "1-12", "1-12:30", "1-12:30:00" in seconds; throws bad_input.
double parse_slurm_time(const std::string& text, const std::string& where);
// Words between spaces, quotes of either kind kept together; each must be an option, "--key=value" or "-k".
std::vector<std::string> split_raw_options(const std::vector<std::string>& texts, const std::string& where);

// What the scripts are made of; paths are whole ones.
struct SlurmJob {
  std::string name;                             // the suite's
  std::string program, suite, root, folder;     // folder: of scripts and logs
  std::vector<std::string> have;                // as for `suite --have`
  std::vector<std::vector<std::string>> tasks;  // ids of the runs of each
  SlurmOptions options;
  int gpus = 0, jobs = 0;
};
// Throws bad_input for paths that a script or sbatch's patterns could not hold.
void check_paths(const SlurmJob& job);

std::string tasks_script(const SlurmJob& job);  // for an array; its argument is the number of its first task
std::string table_script(const SlurmJob& job);
std::string tasks_path(const SlurmJob& job);
std::string table_path(const SlurmJob& job);
std::string log_path(const std::string& folder, const std::string& job, size_t index);

// Command lines of sbatch: `count` tasks from `first`, after the job `after` where there is one; and what makes the
// table once these jobs are over.
std::vector<std::string> tasks_command(const SlurmJob& job, size_t first, size_t count, const std::string& after);
std::vector<std::string> table_command(const SlurmJob& job, const std::vector<std::string>& jobs);
// First task and number of tasks of each array, so that no index is beyond what the cluster allows.
std::vector<std::pair<size_t, size_t>> arrays_of(size_t tasks, size_t most);

}  // namespace sb::cli
