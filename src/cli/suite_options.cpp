#include "cli/suite_options.h"

#include <filesystem>
#include <utility>

#include "base/text.h"
#include "cli/settings.h"
#include "cli/time_budget.h"
#include "cli/training.h"

namespace sb::cli {

void add_suite_options(Arguments& arguments, SuiteOptions& options, const std::string& root) {
  add_set(arguments, options.overrides);
  arguments.texts(
      "--where", options.where, "SECTION.KEY=VALUE[,VALUE]",
      "Only the runs with this value, or one of these; a list is one value, [10,20]; run.id=A,B by their ids; may be "
      "given many times");
  arguments.texts("--have", options.have, "DIR",
                  "Runs that are whole in this folder or archive count as done; may be given many times");
  add_root(arguments, options.root, root);
  arguments.integer("--jobs", options.jobs, 0, 1024,
                    "Runs at a time, each in its own process; 0: one a core, or one on a GPU, or one a card of --gpus");
  arguments.integer("--gpus", options.gpus, 1, 64,
                    "Cards to hand out: a run sees one, and those at work are spread evenly; more --jobs share them");
  arguments.text(
      "--time-limit", options.time_limit, "TIME",
      "Begin no run that cannot be finished within it (90s, 9m, 1.5h), save what is at work then, exit with 75");
  arguments.flag("--list", options.list, "Only list the runs and which of them are done");
  arguments.flag("--status", options.status,
                 "Only say where each run stands: done, running (where, how fast, time left), waiting, stopped, "
                 "failed, lost, unknown");
  arguments.flag("--table-only", options.table_only, "Only write the table of what is done");
  arguments.flag("--no-table", options.no_table, "Work on the runs and leave the table as it is");
  add_threads(arguments, options.threads);
}

void check_options(const SuiteOptions& options) {
  std::error_code ignored;
  if (std::filesystem::exists(options.root, ignored) && !std::filesystem::is_directory(options.root, ignored))
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
      throw bad_input(options.command + " " + name, std::string("expected without ") + first + ", got both");
    first = name;
  }
  if (options.gpus == 0 || options.elsewhere()) return;
  const Cards cards = usable_cards();
  if (!cards.missing.empty())
    throw bad_input(options.command + " --gpus", "expected a GPU, got none: " + cards.missing);
  if (options.gpus > cards.count)
    throw bad_input(options.command + " --gpus", "expected at most " + std::to_string(cards.count) +
                                                     ", which this machine has, got " + std::to_string(options.gpus));
}

}  // namespace sb::cli
