#include "cli/commands/experiments.h"

#include <memory>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_sizes.h"
#include "cli/run_suite.h"
#include "cli/shipped.h"
#include "cli/suite_options.h"
#include "cli/training.h"
#include "jobs/suite_device.h"
#include "jobs/time_budget.h"

namespace sb::cli {
namespace experiments_command {

struct ListOptions {
  std::string json;
};

struct RunOptions : SuiteOptions {
  std::string name, scale = "quick";
  bool sweep = false;
  const Arguments* arguments = nullptr;
};

std::string frames_text(double frames) {
  return frames >= 1e9 ? fixed(frames / 1e9, frames < 1e10 ? 2 : 1) + " G" : fixed(frames / 1e6, 1) + " M";
}

std::string hours_text(const std::optional<double>& seconds) {
  if (!seconds) return "unknown";
  const double hours = *seconds / 3600;
  return hours >= 100 ? grouped(static_cast<uint64_t>(hours + 0.5)) + " h" : duration_text(*seconds);
}

Exit list(const ListOptions& options) {
  const ModelRules rules = experiment_rules();
  const CostTable costs = shipped_costs();
  Json json = {{"experiments", Json::array()}};
  std::string text;
  for (const auto& experiment : read_catalogue(rules.shipped)) {
    Json& entry = json["experiments"].emplace_back(Json{{"name", experiment.name},
                                                        {"title", experiment.title},
                                                        {"sentence", experiment.sentence},
                                                        {"claims", experiment.claims},
                                                        {"suite", experiment.path},
                                                        {"scales", Json::array()}});
    TextTable table({"  scale", "runs", "updates", "frames", "two cores", "one H200"});
    for (const auto& scale : experiment_scales()) {
      const Suite suite = experiment_suite(experiment, {scale, false}, {}, rules);
      const SuiteCost cost = cost_of(suite, costs);
      table.row({"  " + scale, std::to_string(suite.runs.size()), grouped(static_cast<uint64_t>(cost.updates)),
                 frames_text(cost.frames), hours_text(cost.cpu_seconds), hours_text(cost.gpu_seconds)});
      Json& said = entry["scales"].emplace_back(
          Json{{"scale", scale}, {"runs", suite.runs.size()}, {"updates", cost.updates}, {"frames", cost.frames}});
      if (cost.cpu_seconds) said["cpu_hours"] = *cost.cpu_seconds / 3600;
      if (cost.gpu_seconds) said["gpu_hours"] = *cost.gpu_seconds / 3600;
    }
    text += experiment.name + ": " + one_line(experiment.sentence) + "\n  suite " + one_line(experiment.path) + "\n" +
            table.text() + "  selectivbench experiments run " + experiment.name + " --scale quick|small|paper\n\n";
  }
  text += "Costs are estimates from measured rates:\n";
  for (const auto& machine : costs.machines())
    text += "  " + one_line(machine.name) + ": " + one_line(machine.source) + "\n";
  text += "--sweep runs six combinations of learning rate and warm-up, at six times the cost.\n";
  deliver_both(options.json, json_document(json, 3), text);
  return Exit::done;
}

Exit run(RunOptions& options) {
  options.command = "experiments run";
  options.table = options.name;
  if (!options.arguments->given("--out")) options.root = "runs/" + options.scale;
  options.slurm.command = options.command;
  check_options(options);
  check_slurm_options(options.slurm, *options.arguments);
  ModelRules rules = options.elsewhere() ? model_rules() : run_rules();
  rules.shipped = shipped_folder();
  const auto all = read_catalogue(rules.shipped);
  const Experiment& experiment = find_experiment(all, options.name, "experiments run NAME");
  const auto read = [&](const ModelRules& each) {
    return experiment_suite(experiment, {options.scale, options.sweep}, options.overrides, each);
  };
  return run_suite(options, options.elsewhere() ? suite_for_elsewhere(options, rules, read) : read(rules), rules);
}

}  // namespace experiments_command

ModelRules experiment_rules() {
  using namespace experiments_command;
  ModelRules rules = model_rules();
  rules.shipped = shipped_folder();
  return rules;
}

SuiteCost cost_of(const Suite& suite, const CostTable& costs) {
  using namespace experiments_command;
  SuiteCost out;
  out.cpu_seconds = out.gpu_seconds = 0;
  for (const auto& run : suite.runs) {
    out.updates += run.values.train.updates;
    const RunFrames frames = frames_of(run.values);
    out.frames += frames.training;
    const double flops = size_of(run).flops;
    const auto add = [&](std::optional<double>& sum, DeviceKind device) {
      const auto seconds = costs.seconds_on(device, run.values, frames, flops);
      sum = sum && seconds ? std::optional(*sum + *seconds) : std::nullopt;
    };
    add(out.cpu_seconds, DeviceKind::cpu);
    add(out.gpu_seconds, DeviceKind::cuda);
  }
  return out;
}

void add_experiments(Program& program) {
  using namespace experiments_command;
  auto listed = std::make_shared<ListOptions>();
  Arguments& list_arguments = program.group(
      "experiments", "List the shipped experiments with what they test and their cost; run and evaluate them",
      [listed] { return list(*listed); });
  list_arguments.text("--json", listed->json, "FILE", "Write the list as JSON, - for standard output");

  auto options = std::make_shared<RunOptions>();
  Arguments& arguments =
      program.command("experiments run", "Run the missing runs of an experiment, then print its table",
                      {"selectivbench experiments run task3 --scale quick",
                       "selectivbench experiments run main_table --scale small --where task.number=1 --time-limit 9m",
                       "selectivbench experiments run task2 --scale paper --sweep --list",
                       "selectivbench experiments run task2 --scale paper --slurm --gpus 1 --cpus 8 --time 4:00:00"},
                      [options] { return run(*options); });
  options->arguments = &arguments;
  arguments.positional("NAME", options->name, true, "Name of the experiment");
  arguments.choice("--scale", options->scale, experiment_scales(), "Size of grammar, models and training");
  arguments.flag("--sweep", options->sweep, "Train every setting with six combinations of learning rate and warm-up");
  add_suite_options(arguments, *options, "runs/SCALE");
  add_slurm_options(arguments, options->slurm);
  add_experiments_queue(program);  // further commands of the group come here
}

}  // namespace sb::cli
