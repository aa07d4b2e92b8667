#include "jobs/slurm_job.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "jobs/tool.h"

namespace sb {
namespace {

constexpr size_t kLongestJobName = 60;
constexpr double kTableSeconds = 3600;
constexpr int kMaxRestarts = 1000;

std::string job_name(const std::string& suite) {
  std::string out = "sb-" + (suite.empty() ? "suite" : suite.substr(0, kLongestJobName));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !is_of_a_name(c); }, '_');
  return out;
}

// Escapes a path for the patterns of sbatch.
std::string as_pattern(const std::string& path) {
  return replace_all(path, "%", "%%");
}

// The #SBATCH lines of all jobs. All values are checked, so a line cannot hold more than one option.
std::string directives(const SlurmJob& job, bool tasks) {
  const SlurmOptions& o = job.options;
  std::string out;
  const auto add = [&](const std::string& line) { out += "#SBATCH " + line + "\n"; };
  add("--job-name=" + job_name(job.name) + (tasks ? "" : "-table"));
  if (!o.partition.empty()) add("--partition=" + o.partition);
  if (!o.account.empty()) add("--account=" + o.account);
  add("--nodes=1");
  add("--ntasks=1");
  add("--cpus-per-task=" + std::to_string(tasks ? o.cpus : 1));
  if (tasks && job.gpus > 0) add("--gres=gpu:" + std::to_string(job.gpus));
  if (!o.memory.empty()) add("--mem=" + o.memory);
  if (!o.time.empty()) {
    const bool shorter = parse_slurm_time(o.time, o.command + " --time") <= kTableSeconds;
    add("--time=" + (tasks || shorter ? o.time : std::string("1:00:00")));
  }
  if (tasks) add("--signal=B:USR2@" + std::to_string(std::llround(notice_of(o))));
  add(o.requeue ? "--requeue" : "--no-requeue");
  add("--open-mode=append");
  return out;
}

std::string names(const SlurmJob& job) {
  return "program=" + shell_quoted(job.program) + "\nsuite=" + shell_quoted(job.suite) +
         "\nout=" + shell_quoted(job.root) + "\n";
}

std::vector<std::string> sbatch(const std::string& name, const std::vector<std::string>& more,
                                const std::vector<std::string>& asked, const std::vector<std::string>& script) {
  std::vector<std::string> out = {"sbatch", "--parsable", "--job-name=" + name};
  for (const auto* words : {&more, &asked, &script}) out.insert(out.end(), words->begin(), words->end());
  return out;
}

}  // namespace

void check_paths(const SlurmJob& job) {
  const std::string& command = job.options.command;
  std::vector<std::pair<std::string, std::string>> paths = {{command + " --out", job.root}, {command, job.program}};
  for (const auto& each : job.reuse) paths.emplace_back(command + " --reuse", each);
  for (const auto& [where, path] : paths)
    if (std::any_of(path.begin(), path.end(),
                    [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127 || c == '\\'; }))
      throw bad_input(where, "expected a path without control characters and backslashes for Slurm, got '" +
                                 printable(path, 400) + "'");
}

std::string tasks_path(const SlurmJob& job) {
  return job.folder + "/tasks.sh";
}

std::string table_path(const SlurmJob& job) {
  return job.folder + "/table.sh";
}

std::string log_path(const std::string& folder, const std::string& job, size_t index) {
  return folder + "/" + job + "_" + std::to_string(index) + ".log";
}

std::string tasks_script(const SlurmJob& job) {
  const SlurmOptions& o = job.options;
  size_t runs = 0;
  for (const auto& task : job.tasks) runs += task.size();
  std::string out = "#!/bin/bash\n";
  out += formatted(
      "# {} runs of the suite in {} tasks, written by `selectivbench suite --slurm`. Its argument is the "
      "number of the array's\n# first task.\n",
      runs, job.tasks.size());
  out += directives(job, true) + "\n" + names(job);
  out += "runs=(  # of each task, by their ids\n";
  for (const auto& task : job.tasks) out += "  " + joined(task, ",") + "\n";
  out += ")\ntask=$((${1:-0} + SLURM_ARRAY_TASK_ID))\n\n";
  out +=
      "# Before the time limit Slurm sends SIGUSR2, at scancel and preemption SIGTERM: runs save after their update.\n"
      "asked=0 ended=0 child=\n"
      "trap 'asked=1; [[ -z $child ]] || kill -USR2 \"$child\" 2> /dev/null' USR2\n"
      "trap 'ended=1; [[ -z $child ]] || kill -TERM \"$child\" 2> /dev/null' TERM\n";
  out += "\"$program\" suite \"$suite\" --out \"$out\" --where \"run.id=${runs[task]}\" --no-table --threads " +
         std::to_string(o.cpus);
  if (job.gpus > 0) out += " --gpus " + std::to_string(job.gpus);
  if (job.jobs > 0) out += " --jobs " + std::to_string(job.jobs);
  out +=
      " &\nchild=$!\n"
      "((asked == 0)) || kill -USR2 \"$child\"\n"
      "((ended == 0)) || kill -TERM \"$child\"\n"
      "while kill -0 \"$child\" 2> /dev/null; do wait \"$child\"; done\n"
      "wait \"$child\"\ncode=$?\n";
  if (o.requeue) {
    out += formatted(
        "# 75: stopped and saved; 140: the signal came before the program was ready for it. The requeued job resumes.\n"
        "if ((asked == 1 && (code == 75 || code == 140) && ${{SLURM_RESTART_COUNT:-0}} < {})); then\n"
        "  scontrol requeue \"${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID\"\n"
        "fi\n",
        kMaxRestarts);
  }
  return out + "exit \"$code\"\n";
}

std::string table_script(const SlurmJob& job) {
  std::string out = "#!/bin/bash\n# Writes table and report of the finished runs; nothing if no run is finished.\n";
  out += directives(job, false) + "\n" + names(job);
  out += "\"$program\" suite \"$suite\" --out \"$out\" --table-only";
  if (job.table != "table") out += " --table-name " + shell_quoted(job.table);
  for (const auto& each : job.reuse) out += " --reuse " + shell_quoted(each);
  out += " || exit\n[[ ! -e $out/" + shell_quoted(job.table + ".json") +
         " ]] || \"$program\" report \"$out\" --out \"$out/report.html\"\n";
  return out;
}

bool is_of_a_name(char c) {
  return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_';
}

std::string job_label(const std::string& suite, const std::string& token) {
  return job_name(suite) + "-" + token;
}

std::string array_name(const std::string& label, size_t first) {
  return label + "-" + std::to_string(first);
}

std::string table_name(const std::string& label) {
  return label + "-table";
}

std::vector<std::string> tasks_command(const SlurmJob& job, size_t first, size_t count, const std::string& after) {
  std::string array = "--array=0-" + std::to_string(count - 1);
  if (job.options.max_parallel > 0) array += "%" + std::to_string(job.options.max_parallel);
  std::vector<std::string> more = {array, "--output=" + as_pattern(job.folder) + "/%A_%a.log"};
  if (!after.empty()) more.push_back("--dependency=afterany:" + after);
  return sbatch(array_name(job.label, first), more, job.options.sbatch, {tasks_path(job), std::to_string(first)});
}

std::vector<std::string> table_command(const SlurmJob& job, const std::vector<std::string>& jobs) {
  return sbatch(table_name(job.label),
                {"--dependency=afterany:" + joined(jobs, ":"), "--output=" + as_pattern(job.folder) + "/table.log"},
                job.options.sbatch, {table_path(job)});
}

std::vector<std::pair<size_t, size_t>> arrays_of(size_t tasks, size_t most) {
  std::vector<std::pair<size_t, size_t>> out;
  for (size_t first = 0; first < tasks; first += most) out.emplace_back(first, std::min(most, tasks - first));
  return out;
}

}  // namespace sb
