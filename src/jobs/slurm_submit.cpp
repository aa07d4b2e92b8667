#include "jobs/slurm_submit.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "jobs/slurm_job.h"
#include "jobs/slurm_queue.h"
#include "jobs/tool.h"
#include "store/run_check.h"
#include "store/run_lock.h"
#include "suites/frozen_suite.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr double kLockPatience = 30;  // seconds
constexpr size_t kTokenDigits = 8;

std::string whole_path(const std::string& path, const std::string& where) {
  std::error_code failed;
  const fs::path whole = fs::absolute(path, failed).lexically_normal();
  if (failed) throw bad_input(where, "no such path, got '" + printable(path, 400) + "': " + failed.message());
  std::string text = whole.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// A new folder with the next number. The destructor removes it unless it is kept, or another process has the lock by
// then and may have read it.
class SubmissionFolder {
 public:
  SubmissionFolder(const std::string& root, const RunLock& alone) : alone_(alone) {
    for (int number = last_submission(root) + 1; number < kMaxSubmissions; ++number) {
      path_ = submission_folder(root, number);
      if (::mkdir(path_.c_str(), 0777) == 0) return;
      if (errno != EEXIST)
        throw cannot_write("suite", "cannot make " + printable(path_, 400) + ": " + std::strerror(errno));
    }
    throw cannot_write("suite", printable(root, 400) + "/slurm has too many submissions");
  }
  ~SubmissionFolder() {
    if (kept_) return;
    try {
      alone_.check();
      fs::remove_all(path_);
    } catch (const std::exception&) {
    }
  }
  SubmissionFolder(const SubmissionFolder&) = delete;
  SubmissionFolder& operator=(const SubmissionFolder&) = delete;

  const std::string& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  const RunLock& alone_;
  std::string path_;
  bool kept_ = false;
};

// Throws if a run needs another device than --gpus requests.
void check_device(const SuiteOptions& options, const Suite& suite) {
  const DeviceKind wanted = options.gpus > 0 ? DeviceKind::cuda : DeviceKind::cpu;
  for (const auto& run : suite.runs)
    if (run.values.train.device != wanted)
      throw bad_input(options.command + " --gpus",
                      options.gpus > 0 ? "expected only GPU runs, got a run with train.device cpu"
                                       : "expected at least 1 for runs with train.device cuda, got none");
}

struct Missing {
  std::vector<std::string> ids;  // to be submitted, in the order of work
  size_t done = 0, queued = 0;
  std::set<std::string> jobs;  // Slurm jobs of the queued runs
};

Missing look(const SuiteOptions& options, const Suite& suite, const KnownRuns& known, const SlurmTasks& queue) {
  Missing out;
  for (const size_t i : order_of_work(suite)) {
    const std::string& id = suite.runs[i].run_id;
    if (has_result(options.root + "/" + id) || known.find(id) != nullptr) {
      ++out.done;
    } else if (const auto task = queue.find(id); task != queue.end()) {
      ++out.queued;
      out.jobs.insert(task->second.job.substr(0, task->second.job.find('_')));
    } else {
      out.ids.push_back(id);
    }
  }
  return out;
}

std::string said_of(const Missing& missing, size_t total) {
  std::string line = formatted("[suite] {} of {} done", missing.done, counted(total, "run"));
  if (missing.queued > 0) line += formatted(", {} in Slurm's queue", missing.queued);
  return line;
}

void show(const SlurmJob& job, const Host& host) {
  host.print("# " + one_line(tasks_path(job)) + "\n" + tasks_script(job) + "\n# " + one_line(table_path(job)) + "\n" +
             table_script(job) + "\n");
  for (const auto& [first, count] : arrays_of(job.tasks.size(), ask_array_limit()))
    host.print("# " + shell_line(tasks_command(job, first, count, "")) + "\n");
  host.print("# " + shell_line(table_command(job, {"JOB"})) + "\n");
}

SlurmJob job_of(const SuiteOptions& options, const Suite& suite, const std::string& program) {
  if (program.empty())
    throw bad_input(options.command + " --slurm", "cannot find this program: /proc/self/exe cannot be read");
  SlurmJob job;
  job.name = suite.name;
  job.program = program;
  job.root = whole_path(options.root, options.command + " --out");
  for (const auto& each : options.reuse) job.reuse.push_back(whole_path(each, options.command + " --reuse"));
  job.options = options.slurm;
  job.table = options.table;
  job.gpus = options.gpus;
  job.jobs = options.jobs;
  check_paths(job);
  return job;
}

std::vector<std::vector<std::string>> in_tasks(const std::vector<std::string>& ids, size_t per_task) {
  std::vector<std::vector<std::string>> out;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % per_task == 0) out.emplace_back();
    out.back().push_back(ids[i]);
  }
  return out;
}

// Submits the job that writes the table after all other jobs. If this fails, no run is affected.
void submit_table(const SlurmJob& job, Submission& record, const RunLock& alone, const Host& host) {
  std::set<std::string> ids(job.after.begin(), job.after.end());
  for (const auto& array : record.jobs)
    if (!array.id.empty()) ids.insert(array.id);
  alone.check();
  const Submitted said = submit_job(table_command(job, {ids.begin(), ids.end()}), table_name(record.label));
  if (said.id.empty()) {
    host.complain("warning: " + said.complaint + "; no job writes the table: `" + job.options.command +
                  " --table-only` does");
    return;
  }
  record.table_job = said.id;
  write_submission(record);
  host.complain("[suite] table and report: job " + record.table_job);
}

// Completes the records of earlier commands that were interrupted: adds job ids, and submits a missing table job.
void finish_earlier(const SlurmJob& job, std::vector<Submission>& earlier, const SlurmTasks& queue,
                    const RunLock& alone, const Host& host) {
  for (size_t i = 0; i < earlier.size(); ++i) {
    Submission& record = earlier[i];
    if (record.changed) {
      alone.check();
      write_submission(record);
      host.complain("note: an earlier command ended before it had recorded all its submitted jobs, " +
                    one_line(record.folder));
    }
    const bool alive =
        std::any_of(queue.begin(), queue.end(), [&](const auto& each) { return each.second.submission == i; });
    if (!alive || !record.table_job.empty() || record.label.empty()) continue;
    SlurmJob again = job;
    again.label = record.label;
    again.folder = record.folder;
    if (is_there(table_path(again))) submit_table(again, record, alone, host);
  }
}

void submit(SlurmJob& job, const Suite& suite, const RunLock& alone, const std::string& before, const Host& host) {
  SubmissionFolder folder(job.root, alone);
  job.folder = folder.path();
  job.label = job_label(suite.name, own_record().token.substr(0, kTokenDigits));
  job.suite = freeze_suite(job.folder, suite);
  replace_file(tasks_path(job), tasks_script(job));
  replace_file(table_path(job), table_script(job));
  Submission record{job.folder, job.label, job.tasks, {}, ""};
  for (const auto& [first, count] : arrays_of(job.tasks.size(), ask_array_limit()))
    record.jobs.push_back({"", first, count});
  write_submission(record);  // if this command ends here, the next one finds its jobs by name
  std::vector<std::string> ids;
  size_t runs = 0;
  for (auto& array : record.jobs) {
    const bool in_turn = job.options.max_parallel > 0 && !ids.empty();  // arrays count their active tasks separately
    if (host.stop_requested())
      throw Error(Exit::stopped, "[" + job.options.command + " --slurm] stopped; " +
                                     (ids.empty() ? "nothing was submitted" : "submitted: job " + joined(ids, ", ")) +
                                     "; the same command submits the rest");
    alone.check();
    const Submitted said = submit_job(tasks_command(job, array.first, array.count, in_turn ? ids.back() : ""),
                                      array_name(job.label, array.first));
    if (!said.id.empty() || !said.certain) folder.keep();
    if (said.id.empty())
      throw no_scheduler(
          job.options.command + " --slurm",
          said.complaint + (ids.empty() ? "" : "; submitted before it: job " + joined(ids, ", ")) +
              (said.certain ? ""
                            : "; the same command looks for the job " + array_name(job.label, array.first) + " first"));
    array.id = said.id;
    ids.push_back(said.id);
    write_submission(record);
    for (size_t task = array.first; task < array.first + array.count; ++task) runs += job.tasks[task].size();
  }
  host.complain(before + ", " + counted(runs, "run") + " submitted in " + counted(job.tasks.size(), "task") + ": job " +
                joined(ids, ", ") + ", " + one_line(job.folder));
  submit_table(job, record, alone, host);
}

}  // namespace

Exit submit_suite(const SuiteOptions& options, const Suite& suite, const KnownRuns& known, const Host& host) {
  check_device(options, suite);
  SlurmJob job = job_of(options, suite, host.program);
  std::optional<RunLock> alone;  // two concurrent commands would submit everything twice
  if (!options.slurm.dry_run) {
    make_folder("suite", job.root + "/slurm");
    alone.emplace(wait_for_lock(job.root + "/slurm/lock", kLockPatience, host.stop_requested));
  }
  std::vector<Submission> earlier = read_submissions(job.root);
  std::string fault;
  const auto queue = ask_queue(earlier, fault);
  if (!queue && alone)
    throw no_scheduler(options.command + " --slurm", fault + "; cannot continue: queued runs would be submitted twice");
  const SlurmTasks queued = queue.value_or(SlurmTasks{});
  const auto notes_jobs = alone ? host.graceful_stop() : nullptr;
  if (alone) finish_earlier(job, earlier, queued, *alone, host);
  const Missing missing = look(options, suite, known, queued);
  const std::string before = said_of(missing, suite.runs.size());
  if (!queue) host.complain("note: " + fault + "; runs in the queue are counted as not submitted");
  if (missing.ids.empty()) {
    host.complain(
        before + ", nothing to submit" +
        (missing.queued == 0 ? "" : "; `" + options.command + " --table-only` writes the table of finished runs"));
    return missing.queued == 0 ? Exit::done : Exit::stopped;
  }
  job.after.assign(missing.jobs.begin(), missing.jobs.end());
  job.tasks = in_tasks(missing.ids, static_cast<size_t>(options.slurm.per_task));
  if (!alone) {
    job.folder = job.root + "/slurm/NNN";
    job.suite = job.folder + "/frozen-suite.json";
    job.label = job_label(suite.name, "NNN");
    show(job, host);
    host.complain(before + ", " + counted(job.tasks.size(), "task") + " would be submitted");
    return Exit::done;
  }
  submit(job, suite, *alone, before, host);
  return Exit::done;
}

}  // namespace sb
