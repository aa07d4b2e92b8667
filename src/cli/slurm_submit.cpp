#include "cli/slurm_submit.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/slurm_queue.h"
#include "cli/stop.h"
#include "cli/tool.h"
#include "runs/frozen_suite.h"
#include "runs/run_lock.h"
#include "runs/run_store.h"

namespace sb::cli {
namespace {

namespace fs = std::filesystem;
constexpr double kPatience = 120, kLockPatience = 30;  // seconds
constexpr int kMostSubmissions = 100000;

std::string whole_path(const std::string& path, const std::string& where) {
  std::error_code failed;
  const fs::path whole = fs::absolute(path, failed).lexically_normal();
  if (failed) throw bad_input(where, "no such path, got '" + printable(path, 400) + "': " + failed.message());
  std::string text = whole.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string this_program() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) throw bad_input("suite --slurm", "cannot find this program: " + failed.message());
  return program.string();
}

// A folder of the next number, made by this process alone.
std::string make_submission_folder(const std::string& root) {
  std::error_code failed;
  fs::create_directories(root + "/slurm", failed);
  if (failed) throw cannot_write("suite", "cannot make " + printable(root, 400) + "/slurm: " + failed.message());
  for (int number = 1; number < kMostSubmissions; ++number) {
    std::string folder = submission_folder(root, number);
    if (::mkdir(folder.c_str(), 0777) == 0) return folder;
    if (errno != EEXIST)
      throw cannot_write("suite", "cannot make " + printable(folder, 400) + ": " + std::strerror(errno));
  }
  throw cannot_write("suite", printable(root, 400) + "/slurm has too many submissions");
}

// "123" or "123;cluster".
std::string submitted(const std::vector<std::string>& command) {
  const ToolOutput said = run_tool(command, kPatience);
  if (!said.found) throw check_failed("suite --slurm", "cannot start sbatch: " + complaint_of(said));
  const std::string id = said.out.substr(0, said.out.find_first_not_of("0123456789"));
  if (said.code != 0 || id.empty()) throw check_failed("suite --slurm", "sbatch: " + complaint_of(said));
  return id;
}

std::string counted(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Where runs of the other device than --gpus says were asked for.
void check_device(const SuiteOptions& options, const Suite& suite) {
  const DeviceKind wanted = options.gpus > 0 ? DeviceKind::cuda : DeviceKind::cpu;
  for (const auto& run : suite.runs)
    if (run.values.train.device != wanted)
      throw bad_input("suite --gpus", options.gpus > 0
                                          ? "expected runs of the GPU alone, got one with train.device cpu"
                                          : "expected at least 1 for runs with train.device cuda, got none");
}

struct Missing {
  std::vector<std::string> ids;  // to be submitted, in the order of work
  size_t done = 0, queued = 0;
};

Missing look(const SuiteOptions& options, const Suite& suite, const KnownRuns& known,
             const std::map<std::string, SlurmTask>& queue) {
  Missing out;
  for (const size_t i : order_of_work(suite)) {
    const std::string& id = suite.runs[i].run_id;
    if (has_result(options.root + "/" + id) || known.find(id) != nullptr) {
      ++out.done;
    } else if (queue.contains(id)) {
      ++out.queued;
    } else {
      out.ids.push_back(id);
    }
  }
  return out;
}

std::string said_of(const Missing& missing, size_t total) {
  std::string line = formatted("[suite] {} of {} runs done", missing.done, total);
  if (missing.queued > 0) line += formatted(", {} in Slurm's queue", missing.queued);
  return line;
}

void show(const SlurmJob& job) {
  print("# " + one_line(tasks_path(job)) + "\n" + tasks_script(job) + "\n# " + one_line(table_path(job)) + "\n" +
        table_script(job) + "\n");
  for (const auto& [first, count] : arrays_of(job.tasks.size(), ask_array_limit()))
    print("# " + shell_line(tasks_command(job, first, count, "")) + "\n");
  print("# " + shell_line(table_command(job, {"JOB"})) + "\n");
}

}  // namespace

Exit submit_suite(const SuiteOptions& options, const SlurmOptions& slurm, const Suite& suite, const KnownRuns& known) {
  check_device(options, suite);
  SlurmJob job;
  job.name = suite.name;
  job.program = this_program();
  job.root = whole_path(options.root, "suite --out");
  for (const auto& each : options.have) job.have.push_back(whole_path(each, "suite --have"));
  job.options = slurm;
  job.gpus = options.gpus;
  job.jobs = options.jobs;
  check_paths(job);

  std::optional<RunLock> alone;  // two of this command at once would submit everything twice
  if (!slurm.dry_run) {
    std::error_code failed;
    fs::create_directories(job.root + "/slurm", failed);
    if (failed) throw cannot_write("suite", "cannot make " + printable(job.root, 400) + "/slurm: " + failed.message());
    alone.emplace(wait_for_lock(job.root + "/slurm/lock", kLockPatience, stop_requested));
  }
  std::string fault;
  const auto queue = ask_queue(read_submissions(job.root), fault);
  if (!queue && !slurm.dry_run)
    throw check_failed("suite --slurm", fault + "; without it runs in the queue would be submitted again");
  const Missing missing = look(options, suite, known, queue.value_or(std::map<std::string, SlurmTask>{}));
  if (missing.ids.empty()) {
    complain(said_of(missing, suite.runs.size()) + ", nothing to submit");
    return missing.queued == 0 ? Exit::done : Exit::stopped;
  }
  const auto per_task = static_cast<size_t>(slurm.per_task);
  for (size_t at = 0; at < missing.ids.size(); at += per_task)
    job.tasks.emplace_back(
        missing.ids.begin() + static_cast<std::ptrdiff_t>(at),
        missing.ids.begin() + static_cast<std::ptrdiff_t>(std::min(at + per_task, missing.ids.size())));
  if (slurm.dry_run) {
    job.folder = job.root + "/slurm/NNN";
    job.suite = job.folder + "/frozen-suite.json";
    show(job);
    complain(said_of(missing, suite.runs.size()) + ", " + counted(job.tasks.size(), "task") + " would be submitted");
    return Exit::done;
  }
  job.folder = make_submission_folder(job.root);
  job.suite = freeze_suite(job.folder, suite);
  write_file_atomically(tasks_path(job), tasks_script(job));
  write_file_atomically(table_path(job), table_script(job));
  Submission record{job.folder, job.tasks, {}, ""};
  std::vector<std::string> ids;
  for (const auto& [first, count] : arrays_of(job.tasks.size(), ask_array_limit())) {
    const bool in_turn = slurm.max_parallel > 0 && !ids.empty();  // each array has its own count of tasks at work
    ids.push_back(submitted(tasks_command(job, first, count, in_turn ? ids.back() : "")));
    record.jobs.push_back({ids.back(), first, count});
    write_submission(record);
  }
  complain(said_of(missing, suite.runs.size()) + ", " + counted(missing.ids.size(), "run") + " submitted in " +
           counted(job.tasks.size(), "task") + ": job " + joined(ids, ", ") + ", " + one_line(job.folder));
  try {
    record.table_job = submitted(table_command(job, ids));
    write_submission(record);
    complain("[suite] table and report: job " + record.table_job);
  } catch (const Error& error) {
    complain(std::string("warning: ") + error.what() + "; no job writes the table: `suite --table-only` does");
  }
  return Exit::done;
}

}  // namespace sb::cli
