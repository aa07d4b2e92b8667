// A suite as Slurm jobs: the job scripts, and the commands that submit them.
#pragma once
#include <string>
#include <vector>

#include "jobs/slurm_options.h"

namespace sb {

// Input of the scripts; all paths are absolute.
struct SlurmJob {
  std::string name;                             // name of the suite
  std::string label;                            // prefix of the job names, unique to this submission
  std::string program, suite, root, folder;     // folder: for scripts and logs
  std::string table = "table";                  // base name of the table files
  std::vector<std::string> reuse;               // values of `suite --reuse`
  std::vector<std::vector<std::string>> tasks;  // run ids of each task
  std::vector<std::string> after;               // jobs of other submissions that the table job also waits for
  SlurmOptions options;
  int gpus = 0, jobs = 0;
};
// Throws bad_input for paths that cannot be used in a script or in sbatch patterns.
void check_paths(const SlurmJob& job);

std::string tasks_script(const SlurmJob& job);  // for a job array; its argument is the index of the first task
std::string table_script(const SlurmJob& job);
std::string tasks_path(const SlurmJob& job);
std::string table_path(const SlurmJob& job);
std::string log_path(const std::string& folder, const std::string& job, size_t index);

bool is_of_a_name(char c);  // whether a job name may contain this character
// Job names: "sb-NAME-TOKEN" with only characters that Slurm accepts; the name of an array, from its first task; the
// name of the table job.
std::string job_label(const std::string& suite, const std::string& token);
std::string array_name(const std::string& label, size_t first);
std::string table_name(const std::string& label);

// Command lines of sbatch. tasks_command: `count` tasks from `first`, after the job `after` if given. table_command:
// makes the table once these jobs are over.
std::vector<std::string> tasks_command(const SlurmJob& job, size_t first, size_t count, const std::string& after);
std::vector<std::string> table_command(const SlurmJob& job, const std::vector<std::string>& jobs);
// First task and number of tasks of each array, so that no index exceeds the limit of the cluster.
std::vector<std::pair<size_t, size_t>> arrays_of(size_t tasks, size_t most);

}  // namespace sb
