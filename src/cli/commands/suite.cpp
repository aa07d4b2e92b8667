#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_suite.h"
#include "cli/shipped.h"
#include "cli/stop.h"
#include "cli/suite_options.h"
#include "cli/training.h"
#include "jobs/suite_device.h"
#include "store/run_check.h"
#include "suites/frozen_suite.h"

namespace sb::cli {
namespace suite_command {

struct Options : SuiteOptions {
  std::string file, only;
  int lifeline = -1, shared_by = 1;
  const Arguments* arguments = nullptr;
};

// The run ids in --where. A task of a large suite then reads only its own runs.
std::vector<std::string> ids_asked_for(const Options& options) {
  static const std::string key = "run.id=";
  std::vector<std::string> ids;
  for (const auto& condition : options.where) {
    if (!condition.starts_with(key)) continue;
    const auto named = split(std::string_view(condition).substr(key.size()), ',');
    ids.insert(ids.end(), named.begin(), named.end());
  }
  return ids;
}

Suite suite_asked_for(const Options& options, ModelRules& rules) {
  if (is_frozen_suite(options.file)) {
    if (!options.overrides.empty())
      throw bad_input("suite --set",
                      "cannot change a suite that was submitted, got '" + printable(options.overrides.front()) + "'");
    return read_frozen_suite(options.file, ids_asked_for(options), rules);
  }
  if (!options.elsewhere() || !options.only.empty()) return read_suite(options.file, options.overrides, rules);
  const std::string text = read_config_text(options.file);  // once: it may be a pipe
  return suite_for_elsewhere(
      options, rules, [&](const ModelRules& each) { return parse_suite(text, options.file, options.overrides, each); });
}

Exit work_on_one(const Options& options, const Suite& suite) {
  const auto it = std::find_if(suite.runs.begin(), suite.runs.end(),
                               [&](const ResolvedConfig& r) { return r.run_id == options.only; });
  if (it == suite.runs.end())
    throw bad_input("suite --only", "expected the id of a run of the suite, got " + options.only);
  if (options.lifeline >= 0)
    stop_when_closed(options.lifeline);
  else if (const std::string folder = options.root + "/" + options.only; has_result(folder))
    complain("[suite] the run is done, " + one_line(folder));
  use_threads(options.threads);
  return work_on(*it, options.root, true, options.shared_by);
}

Exit run(const Options& options) {
  check_options(options);
  if (!options.only.empty() && (options.status || options.table_only || options.list))
    throw bad_input("suite --only", std::string("cannot be combined with ") + (options.status       ? "--status"
                                                                               : options.table_only ? "--table-only"
                                                                                                    : "--list"));
  check_slurm_options(options.slurm, *options.arguments);
  // A run of --only is checked when it is built, and a run for another machine is checked there.
  ModelRules rules = options.elsewhere() || !options.only.empty() ? model_rules() : run_rules();
  rules.shipped = shipped_folder();
  Suite suite = suite_asked_for(options, rules);
  if (!options.only.empty()) return work_on_one(options, suite);
  return run_suite(options, std::move(suite), rules);
}

}  // namespace suite_command

void add_suite(Program& program) {
  using namespace suite_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command("suite", "Run the missing runs of a grid, then print its table",
                                         {"selectivbench suite configs/quick.toml --out runs/quick",
                                          "selectivbench suite configs/paper/task1_model_size.toml --list",
                                          "selectivbench suite configs/cpu/task2.toml --time-limit 9m",
                                          "selectivbench suite paper/task2 --slurm --gpus 1 --cpus 8 --time 2:00:00"},
                                         [options] {
                                           options->file = shipped_config("suite FILE", options->file);
                                           return run(*options);
                                         });
  arguments.positional("FILE", options->file, true, "Suite (TOML file), or the name of a shipped suite");
  options->arguments = &arguments;
  add_suite_options(arguments, *options);
  arguments.text("--only", options->only, "RUN", "Work only on the run with this id; print progress as JSON lines");
  add_slurm_options(arguments, options->slurm);
  arguments.heading("");  // internal options, between a suite and its processes
  arguments.text("--table-name", options->table, "NAME", "Name of the table's files");
  arguments.integer("--lifeline", options->lifeline, 0, 1 << 20, "Stop when the other end of this pipe closes");
  arguments.integer("--shared-by", options->shared_by, 1, 65536, "Runs at a time on the device, for the result");
}

}  // namespace sb::cli
