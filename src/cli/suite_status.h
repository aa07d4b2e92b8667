// `suite --status`: what each run of a suite is about, by its folder and, where there is one, by Slurm's queue.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/slurm_queue.h"
#include "runs/known_runs.h"
#include "runs/suite.h"

namespace sb::cli {

enum class RunStanding { done, running, waiting, stopped, failed, lost, missing };
const char* to_string(RunStanding standing);

struct RunStatusLine {
  RunStanding standing = RunStanding::missing;
  std::string text;  // where, how far, why
};

// What Slurm says of a run; absent: nothing.
struct SlurmView {
  std::optional<SlurmTask> queued, over;
  bool submitted = false;
};
// `now`: seconds since 1970 by the clock of the file system, for locks of other machines; absent: not to be had.
RunStatusLine run_status(const std::string& folder, int64_t updates, const SlurmView& slurm, std::optional<double> now);
// By a file made in `folder` for a moment.
std::optional<double> clock_of(const std::string& folder);
// How fast a run is, updates a second, by its last rows of timing; and how far it was then.
struct UpdateRate {
  int64_t update = 0;
  double rate = 0;
};
std::optional<UpdateRate> pace_of(const std::string& folder);

// Prints a line a run and their sum.
void print_status(const std::string& root, const Suite& suite, const KnownRuns& known);

// The last error of a run, kept in its folder by the suite that worked on it.
std::string failure_path(const std::string& folder);

}  // namespace sb::cli
