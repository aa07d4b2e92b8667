#include "train/ranks/work_on_run.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "base/number.h"
#include "base/signal_blocker.h"
#include "store/run_check.h"
#include "train/provenance.h"

namespace sb {
namespace {

constexpr double kLockPatience = 30;  // seconds to wait for a live lock owner, which may be about to finish
constexpr auto kTick = std::chrono::milliseconds(200);

// Calls `tick` several times a second on its own thread, which blocks signals.
class Ticker {
 public:
  explicit Ticker(std::function<void()> tick) {
    const SignalBlocker here;
    try {
      thread_ = std::jthread([this, tick = std::move(tick)](const std::stop_token& end) {
        std::unique_lock lock(mutex_);
        while (!wake_.wait_for(lock, end, kTick, [&] { return end.stop_requested(); })) tick();
      });
    } catch (const std::system_error&) {  // no thread available: no ticks
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

// Opens the run folder once no other process works on it; runs of a killed suite need a moment to save and end. Waits
// for an owner of unknown state until it is known to be alive or dead. Polls `stop` meanwhile.
std::unique_ptr<RunStore> claim(const ResolvedConfig& config, const std::string& root, const WorkHooks& hooks,
                                const std::function<bool()>& stop) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(kLockPatience);
  LockWatch watch;
  for (bool said = false;; said = true) {
    try {
      return std::make_unique<RunStore>(root, config, real_file_system(), &watch);
    } catch (const Error& error) {
      const bool over = watch.beating() && std::chrono::steady_clock::now() > until;
      if (error.code() != Exit::stopped || over) throw;
      if (!said) {
        hooks.waiting(std::string(error.what()) + ", waiting up to " +
                      fixed(std::max(kLockPatience, watch.proof()), 0) + " s for it to end or be known to be dead");
      }
      if (stop() || hooks.stop_within(0.2)) throw;
    }
  }
}

// Several ranks, of which this process is one.
struct Ranks {
  ProcessGroup& group;
  const RankHooks& hooks;
};

// Prepares the run. There is nothing to save yet, so a stop request to one rank ends all ranks at once.
PreparedRun prepared_run(const ResolvedConfig& config, const WorkHooks& hooks, const Ranks* ranks) {
  std::optional<Ticker> ticker;
  if (ranks != nullptr) {
    ticker.emplace([ranks, &hooks] {
      if (hooks.stop_requested() || ranks->group.stop_asked() || ranks->group.ended())
        ranks->hooks.end_process(ranks->group.fail(Exit::stopped, "[train] stopped before its first update"));
    });
  }
  return PreparedRun(config, ranks != nullptr ? &ranks->group : nullptr);
}

// For rank 0, which writes the files, or for a single process (no ranks).
RunStatus work_and_write(const ResolvedConfig& config, const std::string& root, const WorkHooks& hooks,
                         const Ranks* ranks) {
  ProcessGroup* const group = ranks != nullptr ? &ranks->group : nullptr;
  // Tells the other ranks whether there is something to do.
  const auto finished = [&] {
    const bool done = has_result(root + "/" + config.run_id);
    if (done) hooks.kept();
    if (group != nullptr) group->broadcast(done ? Order::done : Order::go_on);
    return done;
  };
  if (finished()) return RunStatus::done;
  PreparedRun run = prepared_run(config, hooks, ranks);
  const auto saves = hooks.graceful_stop();
  const auto display = hooks.display();
  const auto asked = [&] { return hooks.stop_requested() || (group != nullptr && group->stop_asked()); };
  const auto stop = [&] {
    if (group != nullptr) group->alive();
    return asked() || (group != nullptr && group->ended());
  };
  const auto store = claim(config, root, hooks, stop);
  for (const auto& line : store->restored()) hooks.warning(line);
  if (finished()) return RunStatus::done;
  hooks.begins();
  TrainHooks training;
  training.stop = [&] { return stop() || store->lost(); };
  training.saving = hooks.saving;
  training.shared_by = hooks.shared_by;
  training.warning = hooks.warning;
  training.resumed = hooks.resumed;
  training.progress = hooks.progress;
  std::optional<Ticker> ticker;
  if (hooks.tick) ticker.emplace([&] { hooks.tick(asked()); });
  const RunStatus status = train(run, *store, training);
  ticker.reset();
  if (status == RunStatus::stopped) hooks.stopped();
  return status;
}

RunStatus follow_writer(const ResolvedConfig& config, const WorkHooks& hooks, const Ranks& ranks) {
  if (ranks.group.broadcast(Order::go_on) == Order::done) return RunStatus::done;
  PreparedRun run = prepared_run(config, hooks, &ranks);
  if (ranks.group.broadcast(Order::go_on) == Order::done) return RunStatus::done;
  TrainHooks training;
  training.stop = hooks.stop_requested;
  return follow(run, training);
}

// Ranks that differ in one of these would not make the same updates.
std::string rank_identity(const ResolvedConfig& config) {
  const Provenance made = provenance();
  std::map<std::string, std::string> values = config_map(config.canonical);
  values["build: version"] = made.version;
  values["build: commit"] = made.commit;
  values["build: compiler"] = made.compiler;
  values["build: libtorch"] = made.libtorch;
  values["build: instructions"] = made.instructions;
  std::string out;
  for (const auto& [key, value] : values) out += key + "=" + value + "\n";
  return out;
}

}  // namespace

RunStatus work_on_run(const ResolvedConfig& config, const std::string& root, const WorkHooks& hooks) {
  return work_and_write(config, root, hooks, nullptr);
}

RunStatus work_on_run(const ResolvedConfig& config, const std::string& root, const RankPlace& place,
                      const WorkHooks& hooks, const RankHooks& rank_hooks) {
  check_world(config.values, place);
  const bool gpu = !device_of(config.values.train).is_cpu();
  if (place.size == 1 && group_backend(gpu).empty()) return work_and_write(config, root, hooks, nullptr);
  std::unique_ptr<ProcessGroup> group;
  try {
    group = join_group(place, rank_identity(config), gpu);
    const auto together = hooks.graceful_stop();
    group->listen(hooks.stop_requested);
    group->end_with(rank_hooks.end_process);
    const Ranks ranks{*group, rank_hooks};
    const RunStatus status =
        group->writes() ? work_and_write(config, root, hooks, &ranks) : follow_writer(config, hooks, ranks);
    group->leave();
    return status;
  } catch (const GroupEnded& end) {
    rank_hooks.end_process(end);
    throw;
  } catch (const std::exception& error) {
    if (!group) throw;
    const Error failure = rank_hooks.failure(error);
    rank_hooks.end_process(group->fail(failure.code(), failure.what()));
    throw;
  }
}

}  // namespace sb
