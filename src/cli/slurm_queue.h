// What was handed to Slurm for a folder of runs, and what became of it there.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sb::cli {

// ROOT/slurm/001, 002, …: a folder a submission with its scripts, its suite, its logs, and this as submission.json. It
// is written before anything is submitted: a job without a number may be in the queue under its name (array_name).
struct Submission {
  struct Job {
    std::string id;               // of an array; empty: not known to have been submitted
    size_t first = 0, count = 0;  // its tasks
  };
  std::string folder, label;                    // label: what the names of its jobs begin with
  std::vector<std::vector<std::string>> tasks;  // ids of the runs of each
  std::vector<Job> jobs;
  std::string table_job;
  bool changed = false;  // numbers were found that its file does not have
};

constexpr int kMostSubmissions = 100000;
std::string submission_folder(const std::string& root, int number);  // from 1
int last_submission(const std::string& root);                        // 0: there is none; a few numbers may be missing
void write_submission(const Submission& submission);
// Opened by their numbers, oldest first; those without jobs, and damaged ones, are left out.
std::vector<Submission> read_submissions(const std::string& root);

// A task as squeue or sacct has it.
struct SlurmTask {
  std::string job, state, node, reason;  // job: "123_4"
  std::string log;                       // its file
  bool alive = true;                     // waits or is at work, else it is over
  size_t submission = 0;                 // its place among them
};
using SlurmTasks = std::map<std::string, SlurmTask>;  // by run id; of a run that was submitted again its last task

// A state of Slurm's in its long form, without what sacct adds ("CANCELLED by 1000"); nothing for what is none.
struct SlurmState {
  std::string name;
  bool alive = true, at_work = false;
};
std::optional<SlurmState> slurm_state(const std::string& text);

// Those that wait or are at work. `lines`: of `squeue --format=%F|%K|%T|%N|%r|%j`. Jobs that are found by their names
// get their numbers.
SlurmTasks tasks_in_queue(std::vector<Submission>& submissions, const std::string& lines);
// `lines`: of `sacct --format=JobID,State,NodeList,ExitCode`.
SlurmTasks tasks_in_accounting(const std::vector<Submission>& submissions, const std::string& lines);

// What is queued or at work now; nothing, and why in `fault`, where squeue cannot say.
std::optional<SlurmTasks> ask_queue(std::vector<Submission>& submissions, std::string& fault);
// How tasks ended, or stand; empty where there is no accounting.
SlurmTasks ask_accounting(const std::vector<Submission>& submissions);

// What came of a job that was to be submitted.
struct Submitted {
  std::string id;         // empty: it was not, `complaint` says why
  std::string complaint;  // one line
  bool certain = true;    // false: it may have been all the same
};
// `name`: the job's, under which it is looked for where sbatch does not say that it was refused. sbatch is given so
// many seconds.
Submitted submit_job(const std::vector<std::string>& command, const std::string& name, double seconds = 120);
// The most indices an array may have.
size_t ask_array_limit();

}  // namespace sb::cli
