#include <memory>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/commands/experiments.h"
#include "cli/output.h"
#include "cli/run_sizes.h"
#include "store/known_runs.h"

namespace sb::cli {
namespace experiments_queue_command {

struct Options {
  std::vector<std::string> results;
  std::string json;
};

struct StepState {
  QueueStep step;
  size_t runs = 0, done = 0;
  size_t above = 0;                   // not done, but part of an earlier step
  std::optional<double> seconds = 0;  // of the missing runs on one GPU; nullopt if a rate is not known

  size_t missing() const { return runs - done - above; }
};

std::vector<StepState> look(const KnownRuns& known) {
  const ModelRules rules = experiment_rules();
  const auto all = read_catalogue(rules.shipped);
  CostTable costs = shipped_costs();
  std::vector<std::pair<StepState, Suite>> steps;
  for (const auto& step : read_queue(rules.shipped, all)) {
    Suite suite = experiment_suite(find_experiment(all, step.experiment, "experiments queue"), {step.scale, false},
                                   step.set, rules);
    if (!step.where.empty()) keep_where(suite, step.where, "experiments queue");
    for (const auto& run : suite.runs)
      if (const auto* folder = known.find(run.run_id))
        if (const auto taken = time_taken(*folder, known.tree))
          costs.learn(run.values, frames_of(run.values), size_of(run).flops, *taken);
    steps.push_back({{step, suite.runs.size(), 0, 0, 0.0}, std::move(suite)});
  }
  std::vector<StepState> out;
  std::set<std::string> asked;  // a run of several steps counts as missing, and costs, only in the first
  for (auto& [state, suite] : steps) {
    for (const auto& run : suite.runs) {
      if (known.find(run.run_id)) {
        ++state.done;
        continue;
      }
      if (!asked.insert(run.run_id).second) {
        ++state.above;
        continue;
      }
      const auto each = costs.seconds(run.values, frames_of(run.values), size_of(run).flops);
      state.seconds = state.seconds && each ? std::optional(*state.seconds + *each) : std::nullopt;
    }
    out.push_back(std::move(state));
  }
  return out;
}

std::string command_of(const StepState& state, const Options& options) {
  std::string out = "selectivbench experiments run " + state.step.experiment + " --scale " + state.step.scale;
  for (const auto& each : state.step.where) out += " --where " + each;
  for (const auto& each : state.step.set) out += " --set " + each;
  for (const auto& each : options.results) out += " --reuse " + one_line(each);
  return out + " --time-limit 9m --out runs/" + state.step.scale;
}

std::string time_text(const StepState& state) {
  return state.seconds ? duration_text(*state.seconds) : "unknown";
}

Exit run(Options options) {
  if (options.results.empty()) {
    if (is_folder("results"))
      options.results = {"results"};
    else
      complain("note: no folder 'results' here and no --results: nothing is counted as done");
  }
  const KnownRuns known = known_runs(options.results, "experiments queue --results");
  for (const auto& note : known.notes) complain(note);
  const auto steps = look(known);
  TextTable table({"experiment", "step", "runs", "done", "of steps above", "missing", "one H200"}, "llrrrrr");
  Json json = {{"steps", Json::array()}};
  const StepState* next = nullptr;
  size_t all_missing = 0;
  std::optional<double> all_seconds = 0;
  for (const auto& state : steps) {
    const size_t missing = state.missing();
    all_missing += missing;
    if (missing > 0)
      all_seconds = all_seconds && state.seconds ? std::optional(*all_seconds + *state.seconds) : std::nullopt;
    table.row({state.step.experiment, state.step.title, std::to_string(state.runs), std::to_string(state.done),
               state.above == 0 ? "-" : std::to_string(state.above), std::to_string(missing),
               missing == 0 ? "-" : time_text(state)});
    Json& entry = json["steps"].emplace_back(Json{{"title", state.step.title},
                                                  {"experiment", state.step.experiment},
                                                  {"scale", state.step.scale},
                                                  {"where", state.step.where},
                                                  {"set", state.step.set},
                                                  {"runs", state.runs},
                                                  {"done", state.done},
                                                  {"of_steps_above", state.above},
                                                  {"missing", missing}});
    if (state.seconds) entry["seconds"] = *state.seconds;
    if (missing > 0) entry["command"] = command_of(state, options);
    if (!next && missing > 0) next = &state;
  }
  table.row({"all", "", "", "", "", std::to_string(all_missing),
             all_missing == 0 ? "-"
             : all_seconds    ? duration_text(*all_seconds)
                              : "unknown"});
  if (next) json["next"] = command_of(*next, options);
  if (!options.json.empty()) deliver(options.json, json_document(json, 2));
  if (options.json == "-") return Exit::done;
  std::string text = table.text();
  text += "missing, and what it costs: runs that are neither done nor brought by a step above, one after another\n";
  if (next) {
    text += "next: " + command_of(*next, options) + "\n";
    const bool folder = !options.results.empty() && is_folder(options.results.front());
    const std::string archive = (folder ? options.results.front() : "results") + "/NAME.tar.gz";
    text += "then: selectivbench pack runs/" + next->step.scale + " " + one_line(archive) + "\n";
  } else {
    text += "nothing is missing\n";
  }
  print(text);
  return Exit::done;
}

}  // namespace experiments_queue_command

void add_experiments_queue(Program& program) {
  using namespace experiments_queue_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "experiments queue", "Show the runs planned for a GPU, how many are missing, their cost, and the next command",
      {"selectivbench experiments queue", "selectivbench experiments queue --results results --results runs/small"},
      [options] { return run(*options); });
  arguments.texts(
      "--results", options->results, "DIR",
      "Folder of runs or archives, or an archive; can be repeated; default: results, if that folder exists");
  arguments.text("--json", options->json, "FILE", "Write it as JSON, - for standard output");
}

}  // namespace sb::cli
