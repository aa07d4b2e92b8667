// `suite --status`: what each run of a suite is about, by its folder and, where there is one, by Slurm's queue.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/slurm_queue.h"
#include "runs/known_runs.h"
#include "runs/suite.h"

namespace sb::cli {

enum class RunStanding { done, running, waiting, stopped, failed, lost, unknown, missing };
const char* to_string(RunStanding standing);

struct RunStatusLine {
  RunStanding standing = RunStanding::missing;
  std::string text;  // where, how far, why
};

// What Slurm says of a run; absent: nothing.
struct SlurmView {
  std::optional<SlurmTask> queued, over;
  bool submitted = false;
  bool answered = true;  // false: `queued` is absent since nobody could be asked
};
// By squeue, where it answers, else by accounting as far as that goes.
SlurmView slurm_view(const std::string& run, const std::set<std::string>& submitted,
                     const std::optional<SlurmTasks>& queue, const SlurmTasks& accounting);
// Ids of all runs that were submitted; with `intended` those too that may have been.
std::set<std::string> submitted_runs(const std::vector<Submission>& submissions, bool intended);
// `now`: seconds since 1970 by the clock of the file system, for locks of other machines; absent: not to be had.
RunStatusLine run_status(const std::string& folder, int64_t updates, const SlurmView& slurm, std::optional<double> now);
// By a file made in `folder` for a moment.
std::optional<double> clock_of(const std::string& folder);
// How fast a run is, updates a second, by the median of its last rows of timing, so that neither a wait between two
// sittings nor an evaluation counts; and how far it was then.
struct UpdateRate {
  int64_t update = 0;
  double rate = 0;
};
std::optional<UpdateRate> pace_of(const std::string& folder);

// Prints a line a run and their sum.
void print_status(const std::string& root, const Suite& suite, const KnownRuns& known);

// The last error of a run, kept in its folder by the suite that worked on it.
struct RunFailure {
  std::string line;  // what was said last, and what came of it
  std::string task;  // of Slurm, "123_4", that it happened in; empty: in none
};
std::string failure_path(const std::string& folder);
void keep_failure(const std::string& folder, const RunFailure& failure);
// Nothing where a result is there, or where somebody had the run since.
std::optional<RunFailure> last_failure(const std::string& folder);
// Of which this process is a part, by its environment; "" where it is of none.
std::string this_slurm_task();

}  // namespace sb::cli
