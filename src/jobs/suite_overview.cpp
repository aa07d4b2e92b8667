#include "jobs/suite_overview.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "jobs/run_names.h"
#include "store/checkpoint.h"
#include "store/result.h"
#include "store/run_check.h"

namespace sb {
namespace {

// Sets the state of a run from its files.
void look(Overview::Run& run, int64_t updates) {
  std::error_code ignored;
  const std::filesystem::path folder = run.folder;
  if (run.done) {
    run.state = "done";
  } else if (std::filesystem::exists(folder / "result.json", ignored)) {
    run.state = "damaged";
  } else if (std::filesystem::exists(folder / "config.json", ignored)) {
    int64_t saved = 0;
    for (const auto& checkpoint : list_checkpoints(run.folder)) saved = std::max(saved, checkpoint.update);
    saved = std::min(saved, updates);
    run.state = "begun, " + std::to_string(saved) + " of " + std::to_string(updates) + " updates";
    run.left = 1 - static_cast<double>(saved) / static_cast<double>(updates);
  } else {
    run.state = "missing";
  }
}

}  // namespace

std::optional<TimeTaken> time_taken(const std::string& folder, const RunTree& tree) {
  try {
    const std::string path = folder + "/result.json";
    const Result result = parse_result(tree.read(path, kMaxResultBytes), path);
    const bool by_several = result.made && result.made->world.value_or(1) > 1;
    if (result.made && !by_several && result.made->train_seconds && result.made->total_seconds)
      return TimeTaken{*result.made->train_seconds, *result.made->total_seconds, result.status == "diverged",
                       result.made->shared_by};
  } catch (const Error&) {
  }
  return std::nullopt;
}

std::optional<double> alone_seconds(const RunCosts& costs, const CostTable& rates, const ResolvedConfig& run,
                                    double flops, double left) {
  if (const auto seen = costs.seconds_alone(run, flops, left)) return seen;
  return rates.seconds(run.values, flops, left);
}

TimeTaken with_start(TimeTaken taken, double start, double whole) {
  taken.total = std::max(taken.total + start, whole);
  return taken;
}

Overview::Overview(const std::string& root, const Suite& suite, double start, const SizeOf& size_of,
                   const KnownRuns& known) {
  const auto names = run_names(suite.runs);
  for (const auto& config : suite.runs) {
    Run run;
    run.name = names[runs.size()];
    run.folder = root + "/" + config.run_id;
    run.size = size_of(config);
    run.done = has_result(run.folder);
    const RunTree* tree = &RunTree::disk();
    if (const auto* elsewhere = run.done ? nullptr : known.find(config.run_id)) {
      run.done = true;
      run.folder = *elsewhere;
      tree = &known.tree;
    }
    if (run.done) run.taken = time_taken(run.folder, *tree);
    look(run, config.values.train.updates);
    if (run.taken) costs.learn(config, run.size.flops, with_start(*run.taken, start));
    runs.push_back(std::move(run));
  }
}

size_t Overview::done() const {
  return static_cast<size_t>(std::count_if(runs.begin(), runs.end(), [](const Run& run) { return run.done; }));
}

size_t Overview::count(const std::string& state) const {
  return static_cast<size_t>(
      std::count_if(runs.begin(), runs.end(), [&](const Run& run) { return run.state.starts_with(state); }));
}

bool Overview::by_rates(const Suite& suite, size_t i) const {
  return !costs.seconds_alone(suite.runs[i], runs[i].size.flops, runs[i].left) &&
         rates.seconds(suite.runs[i].values, runs[i].size.flops, runs[i].left);
}

std::optional<double> Overview::estimate(const Suite& suite, size_t i) const {
  const auto alone = alone_seconds(costs, rates, suite.runs[i], runs[i].size.flops, runs[i].left);
  if (alone) return *alone * sharing;
  if (const auto as_it_was = costs.seconds_as_they_were(suite.runs[i], runs[i].size.flops, runs[i].left))
    return as_it_was;
  const auto far = costs.seconds_far(suite.runs[i], runs[i].size.flops, runs[i].left);
  return far ? std::optional(*far * sharing) : std::nullopt;
}

std::optional<double> Overview::seconds_left(const Suite& suite, int jobs) const {
  std::vector<double> left;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].done) continue;
    const auto each = estimate(suite, i);
    if (!each) return std::nullopt;
    left.push_back(*each);
  }
  return seconds_in_parallel(left, jobs);
}

}  // namespace sb
