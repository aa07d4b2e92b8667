// Work on one run until it is finished or stopped, alone or as one of several ranks. Rank 0 claims the folder, writes
// and reports; the others follow its orders.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "train/trainer.h"

namespace sb {

// What the work needs from the program.
struct WorkHooks {
  std::function<bool()> stop_requested;             // of this process
  std::function<bool(double seconds)> stop_within;  // sleeps for at most this long; true as soon as a stop is requested
  // While the returned object exists, a signal only requests a stop.
  std::function<std::shared_ptr<void>()> graceful_stop;
  // Called once the run is prepared: opens the display of what follows, which ends with the returned object.
  std::function<std::shared_ptr<void>()> display;
  std::function<void(bool begins)> saving;          // as in TrainHooks
  std::function<void()> kept;                       // the run has a result, which is kept
  std::function<void(const std::string&)> waiting;  // another process holds the run's lock; one line
  std::function<void(const std::string&)> warning;  // one line
  std::function<void(int64_t updates)> resumed;     // as in TrainHooks
  std::function<void()> begins;                     // training is about to begin
  std::function<void(const TrainProgress&)> progress;
  std::function<void(bool stopping)> tick;  // several times a second while training, on another thread; may be empty
  std::function<void()> stopped;            // the run was stopped and saved
  int64_t shared_by = 1;                    // as in TrainHooks
};

// What ranks need besides.
struct RankHooks {
  std::function<Error(const std::exception&)> failure;  // an exception as the user sees it
  // Ends the process without destructors, since threads of the group may hang while they wait for a lost rank. Must not
  // return.
  std::function<void(const GroupEnded&)> end_process;
};

// Works on the run in the folder ROOT/RUN_ID; an existing result is kept.
RunStatus work_on_run(const ResolvedConfig& config, const std::string& root, const WorkHooks& hooks);
// The same as one of several ranks. Does not return if a rank is lost.
RunStatus work_on_run(const ResolvedConfig& config, const std::string& root, const RankPlace& place,
                      const WorkHooks& hooks, const RankHooks& rank_hooks);

}  // namespace sb
