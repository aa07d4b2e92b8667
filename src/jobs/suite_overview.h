// Overview of the runs of a suite: names, sizes, progress, and what remains to be done.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jobs/cost_table.h"
#include "jobs/run_costs.h"
#include "store/known_runs.h"
#include "suites/suite.h"

namespace sb {

// Size of a run, for --list and for scaling estimates.
struct Size {
  int64_t parameters = 0;
  double flops = 0;  // training FLOPs per token
};

using SizeOf = std::function<Size(const ResolvedConfig& run)>;

// Time of a finished run in one process; nullopt if the result does not say, or if several ranks trained it.
std::optional<TimeTaken> time_taken(const std::string& folder, const RunTree& tree = RunTree::disk());
// Seconds of a run that has its device to itself: from similar runs if known, else from the table. Every estimate of a
// command starts with it.
std::optional<double> alone_seconds(const RunCosts& costs, const CostTable& rates, const ResolvedConfig& run,
                                    double flops, double left = 1);
// Adjusts a time to that of a separate process: adds `start` seconds, which the result does not include; at least
// `whole`, the seconds of the process if it did the run alone.
TimeTaken with_start(TimeTaken taken, double start, double whole = 0);

struct Overview {
  struct Run {
    std::string name, folder;
    Size size;
    bool done = false;
    std::string state;  // "done", "begun, 3 of 70 updates", "damaged" or "missing"
    double left = 1;    // share of its updates that remain
    std::optional<TimeTaken> taken;
  };
  std::vector<Run> runs;
  RunCosts costs;
  CostTable rates;     // for runs without a similar run in the folder; empty: no estimate for them
  double sharing = 1;  // concurrent runs per machine or GPU

  // `start`: seconds that a process takes to start. Runs without a result in `root` are looked up in `known`.
  Overview(const std::string& root, const Suite& suite, double start, const SizeOf& size_of,
           const KnownRuns& known = {});

  size_t done() const;
  size_t count(const std::string& state) const;  // runs whose state begins with this text
  std::optional<double> estimate(const Suite& suite, size_t run) const;
  bool by_rates(const Suite& suite, size_t run) const;  // whether the estimate comes from the table
  // Seconds until all missing runs are done, `jobs` at a time; nullopt if there is no estimate for one of them.
  std::optional<double> seconds_left(const Suite& suite, int jobs) const;
};

}  // namespace sb
