#include "jobs/suite_overview.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "jobs/run_names.h"
#include "store/checkpoint.h"
#include "store/result.h"
#include "store/run_check.h"

namespace sb {
namespace {

// Sets the state of a run from its files.
void look(Overview::Run& run, int64_t updates) {
  const std::filesystem::path folder = run.folder;
  if (run.done) {
    run.state = "done";
  } else if (is_there(folder / "result.json")) {
    run.state = "damaged";
  } else if (is_there(folder / "config.json")) {
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
    if (result.made && !by_several && result.made->total_seconds)
      return TimeTaken{*result.made->total_seconds, result.status == "diverged", result.made->shared_by,
                       result.made->threads};
  } catch (const Error&) {
  }
  return std::nullopt;
}

double seconds_in_parallel(const std::vector<double>& each, int jobs) {
  std::vector<double> busy(static_cast<size_t>(std::max(1, jobs)), 0.0);
  for (const double seconds : each) *std::min_element(busy.begin(), busy.end()) += seconds;
  return *std::max_element(busy.begin(), busy.end());
}

Overview::Overview(const std::string& root, const Suite& suite, CostTable rates, const SizeOf& size_of,
                   const KnownRuns& known)
    : costs(std::move(rates)) {
  const auto names = run_names(suite.runs);
  for (const auto& config : suite.runs) {
    Run run;
    run.name = names[runs.size()];
    run.folder = root + "/" + config.run_id;
    run.size = size_of(config);
    if (run.size.flops > 0) run.frames = frames_of(config.values);
    run.done = has_result(run.folder);
    const RunTree* tree = &RunTree::disk();
    if (const auto* elsewhere = run.done ? nullptr : known.find(config.run_id)) {
      run.done = true;
      run.folder = *elsewhere;
      tree = &known.tree;
    }
    if (run.done) run.taken = time_taken(run.folder, *tree);
    look(run, config.values.train.updates);
    // Another CPU says little about the speed of this one.
    const bool own = run.folder == root + "/" + config.run_id;
    if (run.taken && (own || config.values.train.device == DeviceKind::cuda))
      costs.learn(config.values, run.frames, run.size.flops, *run.taken);
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

std::optional<double> Overview::estimate(const Suite& suite, size_t i) const {
  const auto alone = costs.seconds(suite.runs[i].values, runs[i].frames, runs[i].size.flops, runs[i].left);
  if (!alone) return std::nullopt;
  return suite.runs[i].values.train.device == DeviceKind::cpu ? *alone * rated_cores / threads : *alone * sharing;
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
