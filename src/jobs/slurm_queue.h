// Submissions to Slurm for a folder of runs, and their state in the queue.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sb {

// A submission: folder ROOT/slurm/001, 002, … with its scripts, suite and logs, and this record as submission.json. The
// record is written before anything is submitted, so a job without an id may be in the queue under its name
// (array_name).
struct Submission {
  struct Job {
    std::string id;               // id of an array; empty: not known to be submitted
    size_t first = 0, count = 0;  // its tasks
  };
  std::string folder, label;                    // label: prefix of its job names
  std::vector<std::vector<std::string>> tasks;  // run ids of each task
  std::vector<Job> jobs;
  std::string table_job;
  bool changed = false;  // job ids were found that its file does not have
};

constexpr int kMaxSubmissions = 100000;
std::string submission_folder(const std::string& root, int number);  // from 1
int last_submission(const std::string& root);                        // 0: none; a few numbers may be missing
void write_submission(const Submission& submission);
// Reads submissions by number, oldest first; skips damaged ones and those without jobs.
std::vector<Submission> read_submissions(const std::string& root);

// A task as reported by squeue or sacct.
struct SlurmTask {
  std::string job, state, node, reason;  // job: "123_4"
  std::string log;                       // path of its log
  bool alive = true;                     // waiting or running; false: over
  size_t submission = 0;                 // index of its submission
};
using SlurmTasks = std::map<std::string, SlurmTask>;  // by run id; the last task if a run was resubmitted

// A Slurm state in its long form, without additions of sacct ("CANCELLED by 1000"); nullopt for an unknown text.
struct SlurmState {
  std::string name;
  bool alive = true, at_work = false;
};
std::optional<SlurmState> slurm_state(const std::string& text);

// Waiting and running tasks. `lines`: output of `squeue --format=%F|%K|%T|%N|%r|%j`. Sets the ids of jobs that are
// found by name.
SlurmTasks tasks_in_queue(std::vector<Submission>& submissions, const std::string& lines);
// `lines`: output of `sacct --format=JobID,State,NodeList,ExitCode`.
SlurmTasks tasks_in_accounting(const std::vector<Submission>& submissions, const std::string& lines);

// Tasks that are queued or running now; nullopt if squeue fails, with the reason in `fault`.
std::optional<SlurmTasks> ask_queue(std::vector<Submission>& submissions, std::string& fault);
// States of tasks from accounting; empty if there is no accounting.
SlurmTasks ask_accounting(const std::vector<Submission>& submissions);

// Outcome of a submission.
struct Submitted {
  std::string id;         // empty: not submitted; `complaint` says why
  std::string complaint;  // one line
  bool certain = true;    // false: the job may have been submitted nevertheless
};
// Runs sbatch for at most `seconds`. If sbatch does not clearly refuse the job, looks for the job in the queue by
// `name`.
Submitted submit_job(const std::vector<std::string>& command, const std::string& name, double seconds = 120);
// Maximum number of indices of a job array.
size_t ask_array_limit();

}  // namespace sb
