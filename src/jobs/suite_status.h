// `suite --status`: the state of each run of a suite, from its folder and, if there is one, from Slurm's queue.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jobs/host.h"
#include "jobs/slurm_queue.h"
#include "store/known_runs.h"
#include "suites/suite.h"

namespace sb {

enum class RunStanding { done, running, waiting, stopped, failed, lost, unknown, missing };
const char* to_string(RunStanding standing);

struct RunStatusLine {
  RunStanding standing = RunStanding::missing;
  std::string text;  // where, how far, why
};

// What Slurm reports about a run; absent: nothing.
struct SlurmView {
  std::optional<SlurmTask> queued, over;
  bool submitted = false;
  bool answered = true;  // false: `queued` is absent because squeue could not be asked
};
// From squeue if it answers, else from accounting as far as possible.
SlurmView slurm_view(const std::string& run, const std::set<std::string>& submitted,
                     const std::optional<SlurmTasks>& queue, const SlurmTasks& accounting);
// Ids of all submitted runs; with `intended`, also of runs that may have been submitted.
std::set<std::string> submitted_runs(const std::vector<Submission>& submissions, bool intended);
// `now`: seconds since 1970 by the clock of the file system, for locks of other machines; absent: not available.
RunStatusLine run_status(const std::string& folder, int64_t updates, const SlurmView& slurm, std::optional<double> now);
// Reads the clock of the file system with a temporary file in `folder`.
std::optional<double> clock_of(const std::string& folder);
// Speed of a run in updates per second, and its last update. The median over its last timing rows excludes evaluations
// and pauses between processes.
struct UpdateRate {
  int64_t update = 0;
  double rate = 0;
};
std::optional<UpdateRate> pace_of(const std::string& folder);

// Prints one line per run, then totals.
void print_status(const std::string& root, const Suite& suite, const KnownRuns& known, const Host& host);

// The last error of a run, stored in its folder by the suite that ran it.
struct RunFailure {
  std::string line;  // last error message and outcome
  std::string task;  // Slurm task "123_4" of the failure; empty: none
};
std::string failure_path(const std::string& folder);
void keep_failure(const std::string& folder, const RunFailure& failure);
// nullopt if there is a result, or if a process has worked on the run since.
std::optional<RunFailure> last_failure(const std::string& folder);
// The Slurm task of this process, from its environment; "" if there is none.
std::string this_slurm_task();

}  // namespace sb
