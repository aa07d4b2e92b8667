#include "cli/slurm_job.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/time_budget.h"
#include "cli/tool.h"

namespace sb::cli {
namespace {

constexpr size_t kLongestName = 200, kLongestJobName = 60;
constexpr double kUsualNotice = 300, kTableSeconds = 3600;  // seconds
constexpr int kMostRestarts = 1000, kMostNotice = 65535;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(const std::string& text, const std::string& more) {
  return !text.empty() && text.size() <= kLongestName && text.front() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter_or_digit(c) || more.find(c) != std::string::npos; });
}

void expect_name(const std::string& where, const std::string& text, const std::string& more) {
  if (text.empty() || is_name(text, more)) return;
  throw bad_input(where, formatted("expected letters, digits and {}, got '{}'", more, printable(text, 200)));
}

void expect_memory(const std::string& where, const std::string& text) {
  if (text.empty()) return;
  const bool unit = std::string("KMGT").find(text.back()) != std::string::npos;
  const auto number = parse_unsigned(text.substr(0, text.size() - (unit ? 1 : 0)));
  if (!number || *number == 0 || *number > 1'000'000'000)
    throw bad_input(where, "expected a size such as 16G or 4000M, got '" + printable(text) + "'");
}

// Seconds before the limit that runs are asked to save.
double notice_of(const SlurmOptions& options) {
  const double limit = options.time.empty() ? 0 : parse_slurm_time(options.time, "suite --time");
  if (!options.signal.empty()) return parse_duration(options.signal, "suite --signal");
  return limit > 0 ? std::min(kUsualNotice, std::floor(limit / 4)) : kUsualNotice;
}

// Options of sbatch that are made here, those that would put something else in the place of the script, and other
// clusters than the one whose queue is asked. sbatch takes what begins like an option for it.
bool is_ours(const std::string& word) {
  static const std::array ours = {"--array",      "--dependency", "--parsable", "--wrap",  "--wait",
                                  "--test-only",  "--clusters",   "--output",   "--error", "--signal",
                                  "--no-requeue", "--requeue",    "--time"};
  const std::string name = word.substr(0, word.find('='));
  if (name.starts_with("--"))
    return std::any_of(ours.begin(), ours.end(), [&](const std::string& each) { return each.starts_with(name); });
  return name.size() > 1 && std::string_view("adWMoet").find(name[1]) != std::string_view::npos;
}

std::string job_name(const std::string& suite) {
  std::string out = "sb-" + suite.substr(0, kLongestJobName);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !is_letter_or_digit(c) && c != '.' && c != '-'; }, '_');
  return out;
}

// A path as sbatch's patterns have it.
std::string as_pattern(const std::string& path) {
  std::string out;
  for (const char c : path) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

// What all jobs ask for; values are checked ones, so that no line says more than it seems to.
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
    const bool shorter = parse_slurm_time(o.time, "suite --time") <= kTableSeconds;
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

std::vector<std::string> sbatch(const SlurmJob& job, std::vector<std::string> more) {
  std::vector<std::string> out = {"sbatch", "--parsable"};
  out.insert(out.end(), more.begin(), more.end());
  const auto raw = split_raw_options(job.options.raw, "suite --sbatch");
  out.insert(out.end(), raw.begin(), raw.end());
  return out;
}

}  // namespace

void add_slurm_options(Arguments& arguments, SlurmOptions& options) {
  arguments.heading("Slurm (docs/cluster.md)");
  arguments.flag("--slurm", options.submit,
                 "Submit what is missing as an array of jobs, then one that writes table and report; --gpus is what a "
                 "task asks for and decides the device, --jobs the runs at a time in a task");
  arguments.flag("--dry-run", options.dry_run, "Only print the scripts and the commands that would submit them");
  arguments.text("--partition", options.partition, "NAME", "Partition of the jobs");
  arguments.text("--account", options.account, "NAME", "Account of the jobs");
  arguments.integer("--cpus", options.cpus, 1, 1024, "Cores of a task, shared by its runs");
  arguments.text("--mem", options.memory, "SIZE", "Memory of a task, such as 16G");
  arguments.text("--time", options.time, "TIME", "Time limit of a task, as Slurm writes it: 2:00:00, 1-12:00:00");
  arguments.text("--signal", options.signal, "TIME",
                 "Runs are asked to save so long before the time limit; else 5m, at most a quarter of --time");
  arguments.integer("--per-task", options.per_task, 1, 100000, "Runs of a task");
  arguments.integer("--max-parallel", options.max_parallel, 0, 100000, "Tasks at work at a time; 0: as Slurm has it");
  arguments.flag("--requeue", options.requeue, "At the time limit, and where a node fails, the task is queued again");
  arguments.texts("--sbatch", options.raw, "OPTIONS",
                  "More options for sbatch, --key=value each, as \"--qos=long --constraint=a100\"; may be given many "
                  "times");
}

void check_slurm_options(const SlurmOptions& options, const Arguments& arguments) {
  if (!options.submit)
    for (const char* name : {"--dry-run", "--partition", "--account", "--cpus", "--mem", "--time", "--signal",
                             "--per-task", "--max-parallel", "--requeue", "--sbatch"})
      if (arguments.given(name)) throw bad_input(arguments.where(name), "expected with --slurm, got it without");
  check_slurm_values(options);
}

void check_slurm_values(const SlurmOptions& options) {
  expect_name("suite --partition", options.partition, "_.,+-");
  expect_name("suite --account", options.account, "_.@+-");
  expect_memory("suite --mem", options.memory);
  const double limit = options.time.empty() ? 0 : parse_slurm_time(options.time, "suite --time");
  const double notice = notice_of(options);
  if (limit > 0 && notice >= limit)
    throw bad_input("suite --signal", "expected less than --time, got '" + printable(options.signal) + "'");
  if (notice > kMostNotice)
    throw bad_input("suite --signal",
                    formatted("expected at most {}s, got '{}'", kMostNotice, printable(options.signal)));
  split_raw_options(options.raw, "suite --sbatch");
}

double parse_slurm_time(const std::string& text, const std::string& where) {
  const Error refused =
      bad_input(where, "expected a time as Slurm writes it, 2:00:00 or 1-12:00:00, got '" + printable(text) + "'");
  const size_t dash = text.find('-');
  std::vector<uint64_t> fields;
  const std::string rest = dash == std::string::npos ? text : text.substr(dash + 1);
  for (size_t at = 0; at <= rest.size();) {
    const size_t end = std::min(rest.find(':', at), rest.size());
    const auto number = parse_unsigned(rest.substr(at, end - at));
    if (!number || *number > 1'000'000) throw refused;
    fields.push_back(*number);
    at = end + 1;
  }
  if (fields.size() > 3) throw refused;
  uint64_t seconds = 0;
  if (dash != std::string::npos) {  // days-hours[:minutes[:seconds]]
    const auto days = parse_unsigned(text.substr(0, dash));
    if (!days || *days > 10000) throw refused;
    fields.resize(3, 0);
    seconds = ((*days * 24 + fields[0]) * 60 + fields[1]) * 60 + fields[2];
  } else if (fields.size() == 3) {
    seconds = (fields[0] * 60 + fields[1]) * 60 + fields[2];
  } else {  // minutes[:seconds]
    seconds = fields[0] * 60 + (fields.size() == 2 ? fields[1] : 0);
  }
  if (seconds == 0) throw refused;
  return static_cast<double>(seconds);
}

std::vector<std::string> split_raw_options(const std::vector<std::string>& texts, const std::string& where) {
  std::vector<std::string> words;
  for (const auto& text : texts) {
    char quote = 0;
    bool inside = false;
    for (const char c : text) {
      if (static_cast<unsigned char>(c) < ' ' || c == 127)
        throw bad_input(where, "expected no control characters, got '" + printable(text, 200) + "'");
      if (quote == 0 && c == ' ') {
        inside = false;
        continue;
      }
      if (!inside) words.emplace_back();
      inside = true;
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (c == quote) {
        quote = 0;
      } else {
        words.back() += c;
      }
    }
    if (quote != 0) throw bad_input(where, "expected a closing quote, got '" + printable(text, 200) + "'");
  }
  for (const auto& word : words) {
    if (word.size() < 2 || word.front() != '-' || word == "--")
      throw bad_input(where, "expected options as --key=value, got '" + printable(word, 200) + "'");
    if (is_ours(word))
      throw bad_input(where, "expected no option that the suite gives itself, got '" + printable(word, 200) + "'");
  }
  return words;
}

void check_paths(const SlurmJob& job) {
  std::vector<std::pair<std::string, std::string>> paths = {{"suite --out", job.root}, {"suite", job.program}};
  for (const auto& each : job.have) paths.emplace_back("suite --have", each);
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
      "asked=0 child=\n"
      "trap 'asked=1; [[ -z $child ]] || kill -USR2 \"$child\" 2> /dev/null' USR2\n"
      "trap '[[ -z $child ]] || kill -TERM \"$child\" 2> /dev/null' TERM\n";
  out += "\"$program\" suite \"$suite\" --out \"$out\" --where \"run.id=${runs[task]}\" --no-table --threads " +
         std::to_string(o.cpus);
  if (job.gpus > 0) out += " --gpus " + std::to_string(job.gpus);
  if (job.jobs > 0) out += " --jobs " + std::to_string(job.jobs);
  out +=
      " &\nchild=$!\n"
      "((asked == 0)) || kill -USR2 \"$child\"\n"
      "while kill -0 \"$child\" 2> /dev/null; do wait \"$child\"; done\n"
      "wait \"$child\"\ncode=$?\n";
  if (o.requeue) {
    out += formatted(
        "# 75: stopped and saved; 140: the signal came before the program was ready for it. It goes on from there.\n"
        "if ((asked == 1 && (code == 75 || code == 140) && ${{SLURM_RESTART_COUNT:-0}} < {})); then\n"
        "  scontrol requeue \"${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID\"\n"
        "fi\n",
        kMostRestarts);
  }
  return out + "exit \"$code\"\n";
}

std::string table_script(const SlurmJob& job) {
  std::string out = "#!/bin/bash\n# Table and report of the suite as far as it is done.\n";
  out += directives(job, false) + "\n" + names(job);
  out += "\"$program\" suite \"$suite\" --out \"$out\" --table-only";
  for (const auto& each : job.have) out += " --have " + shell_quoted(each);
  out += " &&\n  \"$program\" report \"$out\" --out \"$out/report.html\"\n";
  return out;
}

std::vector<std::string> tasks_command(const SlurmJob& job, size_t first, size_t count, const std::string& after) {
  std::string array = "--array=0-" + std::to_string(count - 1);
  if (job.options.max_parallel > 0) array += "%" + std::to_string(job.options.max_parallel);
  std::vector<std::string> more = {array, "--output=" + as_pattern(job.folder) + "/%A_%a.log"};
  if (!after.empty()) more.push_back("--dependency=afterany:" + after);
  std::vector<std::string> out = sbatch(job, more);
  out.push_back(tasks_path(job));
  out.push_back(std::to_string(first));
  return out;
}

std::vector<std::string> table_command(const SlurmJob& job, const std::vector<std::string>& jobs) {
  std::vector<std::string> out =
      sbatch(job, {"--dependency=afterany:" + joined(jobs, ":"), "--output=" + as_pattern(job.folder) + "/table.log"});
  out.push_back(table_path(job));
  return out;
}

std::vector<std::pair<size_t, size_t>> arrays_of(size_t tasks, size_t most) {
  std::vector<std::pair<size_t, size_t>> out;
  for (size_t first = 0; first < tasks; first += most) out.emplace_back(first, std::min(most, tasks - first));
  return out;
}

}  // namespace sb::cli
