// A suite as jobs of Slurm: the scripts that do it and the commands that submit them.
#pragma once
#include <string>
#include <vector>

#include "cli/slurm_options.h"

namespace sb::cli {

// What the scripts are made of; paths are whole ones.
struct SlurmJob {
  std::string name;                             // the suite's
  std::string label;                            // what the names of its jobs begin with; no other submission has it
  std::string program, suite, root, folder;     // folder: of scripts and logs
  std::string table = "table";                  // name of its files
  std::vector<std::string> have;                // as for `suite --have`
  std::vector<std::vector<std::string>> tasks;  // ids of the runs of each
  std::vector<std::string> after;               // jobs of other submissions that the table waits for too
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

bool is_of_a_name(char c);  // that jobs get here
// "sb-NAME-TOKEN" with what Slurm takes in a name; and the names of an array, by its first task, and of the last job.
std::string job_label(const std::string& suite, const std::string& token);
std::string array_name(const std::string& label, size_t first);
std::string table_name(const std::string& label);

// Command lines of sbatch: `count` tasks from `first`, after the job `after` where there is one; and what makes the
// table once these jobs are over.
std::vector<std::string> tasks_command(const SlurmJob& job, size_t first, size_t count, const std::string& after);
std::vector<std::string> table_command(const SlurmJob& job, const std::vector<std::string>& jobs);
// First task and number of tasks of each array, so that no index is beyond what the cluster allows.
std::vector<std::pair<size_t, size_t>> arrays_of(size_t tasks, size_t most);

}  // namespace sb::cli
