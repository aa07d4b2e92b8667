// Overview of the runs of a suite: names, sizes, progress, and what remains to be done.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jobs/cost_table.h"
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
// Seconds until all are done with `jobs` at a time, each started in this order as soon as another ends.
double seconds_in_parallel(const std::vector<double>& each, int jobs);

struct Overview {
  struct Run {
    std::string name, folder;
    Size size;
    RunFrames frames = {};  // unset if the size is not known
    bool done = false;
    std::string state;  // "done", "begun, 3 of 70 updates", "damaged" or "missing"
    double left = 1;    // share of its updates that remain
    std::optional<TimeTaken> taken;
  };
  std::vector<Run> runs;
  CostTable costs;               // corrected by the finished runs
  double sharing = 1;            // concurrent runs per GPU
  double threads = rated_cores;  // of a run on a CPU

  // Runs without a result in `root` are looked up in `known`.
  Overview(const std::string& root, const Suite& suite, CostTable rates, const SizeOf& size_of,
           const KnownRuns& known = {});

  size_t done() const;
  size_t count(const std::string& state) const;  // runs whose state begins with this text
  std::optional<double> estimate(const Suite& suite, size_t run) const;
  // Seconds until all missing runs are done, `jobs` at a time; nullopt if there is no estimate for one of them.
  std::optional<double> seconds_left(const Suite& suite, int jobs) const;
};

}  // namespace sb
