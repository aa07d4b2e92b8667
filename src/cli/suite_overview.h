// The runs of a suite as people see them: names, sizes, how far each is, and what is left to do.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/cost_table.h"
#include "cli/run_costs.h"
#include "runs/known_runs.h"
#include "runs/suite.h"

namespace sb::cli {

// How large a run is: what --list shows and estimates are scaled by.
struct Size {
  int64_t parameters = 0;
  double flops = 0;  // of training, a token
};

Size size_of(const ResolvedConfig& run);  // nothing where there is no such network
// Rates of the shipped table, with the FLOPs of the networks they were measured on.
CostTable shipped_costs();

// What a finished run took of one process; nothing where its result does not say, or several ranks made it.
std::optional<TimeTaken> time_taken(const std::string& folder, const RunTree& tree = RunTree::disk());
// Seconds of a run that has its device to itself: by runs like it of which that is known or can be reckoned, else by
// the table. Every estimate of a command begins with it.
std::optional<double> alone_seconds(const RunCosts& costs, const CostTable& rates, const ResolvedConfig& run,
                                    double flops, double left = 1);
// What a process of its own takes for it, for estimates: it has more to do than it can put into its result, `start`
// seconds before, and all of the `whole` seconds where it did the run alone.
TimeTaken with_start(TimeTaken taken, double start, double whole = 0);

struct Overview {
  struct Run {
    std::string name, folder;
    Size size;
    bool done = false;
    std::string state;  // "done", "begun, 3 of 70 updates", "damaged" or "missing"
    double left = 1;    // share of its updates
    std::optional<TimeTaken> taken;
  };
  std::vector<Run> runs;
  RunCosts costs;
  CostTable rates;     // for runs that no other of the folder is like; empty: nothing is said of them
  double sharing = 1;  // runs at a time on a machine or card

  // `start`: seconds a process takes to begin. Runs that are not done in `root` may be known elsewhere.
  Overview(const std::string& root, const Suite& suite, double start, const KnownRuns& known = {});

  size_t done() const;
  size_t count(const std::string& state) const;  // of those that begin so
  std::optional<double> estimate(const Suite& suite, size_t run) const;
  bool by_rates(const Suite& suite, size_t run) const;  // whether that is by the table
  // Until all that is missing is done, `jobs` at a time; nothing where nothing is known of one of them.
  std::optional<double> seconds_left(const Suite& suite, int jobs) const;
};

}  // namespace sb::cli
