#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/run_costs.h"
#include "cli/shipped.h"
#include "cli/stop.h"
#include "cli/suite_session.h"
#include "cli/training.h"

namespace sb::cli {
namespace {

struct Options : SuiteOptions {
  std::string file, only;
  int lifeline = -1, shared_by = 1;
};

Exit work_on_one(const Options& options, const Suite& suite) {
  const auto it = std::find_if(suite.runs.begin(), suite.runs.end(),
                               [&](const ResolvedConfig& r) { return r.run_id == options.only; });
  if (it == suite.runs.end())
    throw bad_input("suite --only", "expected the id of a run of the suite, got " + options.only);
  if (options.lifeline >= 0) stop_when_closed(options.lifeline);
  use_threads(options.threads);
  return work_on(*it, options.root, true, options.shared_by);
}

Exit run(const Options& options) {
  check_options(options);
  const bool look = options.list || !options.only.empty();  // a run that is worked on is checked as it is built
  ModelRules rules = look ? model_rules() : run_rules();
  rules.shipped = shipped_folder();
  Suite suite = read_suite(options.file, options.overrides, rules);
  if (!options.only.empty() && !options.list) return work_on_one(options, suite);
  return run_suite(options, std::move(suite), rules);
}

}  // namespace

void add_suite(Program& program) {
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command("suite", "Run what is missing of a grid of runs, then print its table",
                                         {"selectivbench suite configs/quick.toml --out runs/quick",
                                          "selectivbench suite configs/paper/task1_model_size.toml --list",
                                          "selectivbench suite configs/cpu/task2.toml --time-limit 9m"},
                                         [options] {
                                           options->start = seconds_since_start();
                                           options->file = shipped_config("suite FILE", options->file);
                                           return run(*options);
                                         });
  arguments.positional("FILE", options->file, true, "The suite (TOML), or the name of a shipped one");
  add_suite_options(arguments, *options);
  arguments.text("--only", options->only, "RUN", "Work on this run alone, progress as JSON lines");
  arguments.heading("");  // between a suite and its runs, not for people
  arguments.integer("--lifeline", options->lifeline, 0, 1 << 20, "Stop when the other end of this pipe closes");
  arguments.integer("--shared-by", options->shared_by, 1, 65536, "Runs at a time on the device, for the result");
}

}  // namespace sb::cli
