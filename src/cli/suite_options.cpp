#include "cli/suite_options.h"

#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "cli/settings.h"
#include "cli/training.h"
#include "jobs/time_budget.h"

namespace sb::cli {

void add_suite_options(Arguments& arguments, SuiteOptions& options, const std::string& root) {
  add_set(arguments, options.overrides);
  arguments.texts(
      "--where", options.where, "SECTION.KEY=VALUE[,VALUE]",
      "Only runs with one of these values; a list such as [10,20] is one value; run.id=A,B selects runs by id; can be "
      "repeated");
  arguments.texts("--reuse,--have", options.reuse, "DIR",
                  "Intact runs in this folder or archive count as done; can be repeated (old name: --have)");
  add_root(arguments, options.root, root);
  arguments.integer(
      "--jobs", options.jobs, 0, 1024,
      "Number of concurrent runs, each in its own process; 0: one per GPU with --gpus, one in total if the runs use a "
      "GPU, else one per core");
  arguments.integer("--gpus", options.gpus, 1, 64, "GPUs to use, one per run; extra --jobs share them evenly");
  arguments.text("--time-limit", options.time_limit, "TIME",
                 "Start only runs that can finish within this time (90s, 9m, 1.5h); at the limit, save active runs and "
                 "exit with 75");
  arguments.flag("--list", options.list, "Only list the runs, with progress and estimated time");
  arguments.flag(
      "--status", options.status,
      "Only show the state of each run: done, running (where, how fast, time left), waiting, stopped, failed, "
      "lost, unknown, missing");
  arguments.flag("--table-only", options.table_only, "Only write the table of finished runs");
  arguments.flag("--no-table", options.no_table, "Train the runs, but do not write the table");
  add_threads(arguments, options.threads);
}

void check_options(const SuiteOptions& options) {
  if (is_there(options.root) && !is_folder(options.root))
    throw bad_input(options.command + " --out", "expected a folder, got a file, " + printable(options.root, 400));
  if (!options.time_limit.empty()) parse_duration(options.time_limit, options.command + " --time-limit");
  const std::vector<std::pair<const char*, bool>> modes = {{"--list", options.list},
                                                           {"--status", options.status},
                                                           {"--table-only", options.table_only},
                                                           {"--no-table", options.no_table},
                                                           {"--slurm", options.slurm.submit}};
  const char* first = nullptr;
  for (const auto& [name, given] : modes) {
    if (!given) continue;
    if (first != nullptr)
      throw bad_input(options.command + " " + name, std::string("cannot be combined with ") + first);
    first = name;
  }
  if (options.gpus == 0 || options.elsewhere()) return;
  const Gpus gpus = usable_gpus();
  if (!gpus.missing.empty()) throw bad_input(options.command + " --gpus", "requires a GPU: " + gpus.missing);
  if (options.gpus > gpus.count)
    throw bad_input(options.command + " --gpus", "expected at most " + std::to_string(gpus.count) +
                                                     ", the number of GPUs of this machine, got " +
                                                     std::to_string(options.gpus));
}

void add_slurm_options(Arguments& arguments, SlurmOptions& options) {
  arguments.heading("Slurm (docs/cluster.md)");
  arguments.flag(
      "--slurm", options.submit,
      "Submit the missing runs as an array job, then a job that writes table and report. --gpus is the number of "
      "GPUs per task (0: CPU runs), --jobs the number of concurrent runs per task");
  arguments.flag("--dry-run", options.dry_run, "Print the scripts and submission commands, and submit nothing");
  arguments.text("--partition", options.partition, "NAME", "Partition of the jobs");
  arguments.text("--account", options.account, "NAME", "Account of the jobs");
  arguments.integer("--cpus", options.cpus, 1, 1024, "Cores per task, shared by its runs");
  arguments.text("--mem", options.memory, "SIZE", "Memory per task, such as 16G");
  arguments.text("--time", options.time, "TIME", "Time limit per task, in Slurm's format: 2:00:00, 1-12:00:00");
  arguments.text("--signal", options.signal, "TIME",
                 "How long before the time limit runs are asked to save; default: 5m, at most a quarter of --time");
  arguments.integer("--per-task", options.per_task, 1, 100000, "Runs per task");
  arguments.integer("--max-parallel", options.max_parallel, 0, 100000,
                    "Maximum number of active tasks; 0: Slurm's limit");
  arguments.flag("--requeue", options.requeue, "Requeue a task at its time limit and when its node fails");
  arguments.texts("--sbatch", options.sbatch, "OPTION",
                  "One more option for sbatch, as --sbatch --qos=long; can be repeated");
}

void check_slurm_options(const SlurmOptions& options, const Arguments& arguments) {
  if (!options.submit)
    for (const char* name : {"--dry-run", "--partition", "--account", "--cpus", "--mem", "--time", "--signal",
                             "--per-task", "--max-parallel", "--requeue", "--sbatch"})
      if (arguments.given(name)) throw bad_input(arguments.where(name), "requires --slurm");
  static const std::vector<std::pair<const char*, const char*>> instead = {
      {"--threads", "--cpus"}, {"--time-limit", "--time"}, {"--only", "--where run.id=ID"}};
  if (options.submit)
    for (const auto& [name, other] : instead)
      if (arguments.given(name))
        throw bad_input(arguments.where(name), std::string("cannot be combined with --slurm; use ") + other);
  check_slurm_values(options);
}

}  // namespace sb::cli
