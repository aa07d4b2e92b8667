// What was handed to Slurm for a folder of runs, and what became of it there.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sb::cli {

// ROOT/slurm/001, 002, …: a folder a submission with its scripts, its suite, its logs, and this as submission.json.
struct Submission {
  struct Job {
    std::string id;               // of an array
    size_t first = 0, count = 0;  // its tasks
  };
  std::string folder;
  std::vector<std::vector<std::string>> tasks;  // ids of the runs of each
  std::vector<Job> jobs;
  std::string table_job;
};

std::string submission_folder(const std::string& root, int number);  // from 1
void write_submission(const Submission& submission);
// Opened by their numbers, oldest first; those without jobs, and damaged ones, are left out.
std::vector<Submission> read_submissions(const std::string& root);

// A task as squeue or sacct has it.
struct SlurmTask {
  std::string job, state, node, reason;  // job: "123_4"
  std::string log;                       // its file
};
// By run id. `lines`: of `squeue --format=%F|%K|%T|%N|%r` or `sacct --format=JobID,State,NodeList,ExitCode`.
std::map<std::string, SlurmTask> tasks_in_queue(const std::vector<Submission>& submissions, const std::string& lines);
std::map<std::string, SlurmTask> tasks_in_accounting(const std::vector<Submission>& submissions,
                                                     const std::string& lines);

// What is queued or at work now; nothing, and why in `fault`, where squeue cannot say.
std::optional<std::map<std::string, SlurmTask>> ask_queue(const std::vector<Submission>& submissions,
                                                          std::string& fault);
// How tasks ended that are over; empty where there is no accounting.
std::map<std::string, SlurmTask> ask_accounting(const std::vector<Submission>& submissions);
// The most indices an array may have.
size_t ask_array_limit();

}  // namespace sb::cli
