#include "cli/training.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <link.h>
#include <omp.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/number.h"
#include "base/signal_blocker.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/standard_error.h"
#include "cli/stop.h"
#include "config/config_faults.h"
#include "jobs/devices.h"
#include "jobs/progress.h"
#include "jobs/run_names.h"
#include "kernels/cpu/block_pool.h"
#include "store/result.h"
#include "store/run_check.h"
#include "store/run_store.h"
#include "train/gpu.h"
#include "train/provenance.h"
#include "train/ranks/process_group.h"
#include "train/trainer.h"

namespace sb::cli {
namespace {

// Threads that can be started. OpenMP would end the process if it cannot start one. Results do not depend on it.
int threads_to_be_had(int wanted) {
  std::mutex gate;
  std::vector<std::jthread> others;
  const std::unique_lock closed(gate);
  try {
    while (static_cast<int>(others.size()) + 1 < wanted)
      others.emplace_back([&gate] { const std::lock_guard wait(gate); });
  } catch (const std::system_error&) {
    complain("warning: the system allows " + counted(others.size() + 1, "thread") + " of the " +
             std::to_string(wanted) + " asked for");
  }
  return static_cast<int>(others.size()) + 1;
}

// at::set_num_threads() would also start threads of libpthreadpool, which are not used here, and hang if one fails to
// start. ATen reads these variables in every new thread; the current thread is set directly.
void set_thread_count(int threads) {
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) ::setenv(name, std::to_string(threads).c_str(), 1);
  at::init_num_threads();
  omp_set_num_threads(threads);                              // libtorch may have its own OpenMP
  at::parallel_for(0, threads, 1, [](int64_t, int64_t) {});  // starts the threads now, while they are available
}

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

RunProgress in_words(const TrainProgress& p) {
  return {p.phase, p.update, p.updates, p.loss, p.valid, p.metric};
}

// If the reader is gone, stops the run like a signal: after the current update, with a checkpoint.
void machine_line(const RunProgress& p) {
  try {
    print(to_line(p));
    finish_output();
  } catch (const Error&) {
    request_stop();
  }
}

// Opens the run folder once no other process works on it; runs of a killed suite need a moment to save and end. Waits
// for an owner of unknown state until it is known to be alive or dead. Polls `stop` meanwhile.
std::unique_ptr<RunStore> claim(const ResolvedConfig& config, const std::string& root,
                                const std::function<void(const std::string&)>& waiting,
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
        waiting(std::string(error.what()) + ", waiting up to " + fixed(std::max(kLockPatience, watch.proof()), 0) +
                " s for it to end or be known to be dead");
      }
      if (stop() || stop_within(0.2)) throw;
    }
  }
}

}  // namespace

void use_threads(int threads, int processes) {
  cpu::pool_tensor_memory();
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int wanted = threads > 0 ? threads : std::max(1, cores / processes);
  set_thread_count(threads_to_be_had(wanted));
}

// Looks at the loaded libraries and calls none: that could hang under limits of threads or memory. Distributions
// install every kind of BLAS as libblas.so.3; the folder behind the links tells them apart.
void warn_about_slow_blas() {
  std::string paths;
  const auto look = [](dl_phdr_info* info, size_t, void* out) {
    std::error_code failed;
    *static_cast<std::string*>(out) += std::filesystem::canonical(info->dlpi_name, failed).string() + "\n";
    return 0;
  };
  dl_iterate_phdr(look, &paths);
  for (const char* fast : {"openblas", "mkl", "blis", "atlas", "armpl"})
    if (paths.find(fast) != std::string::npos) return;
  if (paths.find("libblas.so") == std::string::npos) return;
  complain(
      "warning: libtorch uses the slow reference BLAS. Our models do not use it, but your own mixers and the "
      "comparisons of `bench` do: install libopenblas0-openmp.");
}

Gpus usable_gpus() {
  return {gpu_facts().built, gpu_facts().count, gpu_facts().missing};
}

namespace {

constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";

bool sees_own_gpu(const RankPlace& place) {
  return place.grouped && place.local_rank >= 0 && !group_backend(true).empty();
}

Error no_gpu_for(const RankPlace& place, const std::string& missing) {
  return bad_input(
      place.origin == "WORLD_SIZE" ? "LOCAL_RANK" : "SLURM_LOCALID",
      "expected the number of a GPU of this machine, got " + std::to_string(place.local_rank) + ": " + missing);
}

}  // namespace

bool gpus_are_hidden() {
  const char* visible = std::getenv(kVisibleGpus);
  return visible != nullptr && *visible == '\0';
}

void see_own_gpu(const RankPlace& place) {
  if (!sees_own_gpu(place)) return;
  if (const auto gpu = gpu_of_rank(std::getenv(kVisibleGpus), place.local_rank))
    ::setenv(kVisibleGpus, gpu->c_str(), 1);
}

ResolvedConfig with_gpu(const RankPlace& place, const std::function<ResolvedConfig()>& resolve) {
  try {
    return resolve();
  } catch (const ConfigFaults& faults) {
    if (faults.first_key() != "train.device" || !sees_own_gpu(place) || usable_gpus().missing.empty()) throw;
    throw no_gpu_for(place, usable_gpus().missing);
  }
}

void expect_gpu(const ResolvedConfig& config, const RankPlace& place) {
  if (sees_own_gpu(place) && lacks_gpu(config, place.local_rank, gpus_in("/dev"), std::getenv(kVisibleGpus)))
    throw no_gpu_for(place, usable_gpus().missing);
}

void tell_unusable_gpu(const std::vector<ResolvedConfig>& runs) {
  const GpuFacts& gpu = gpu_facts();
  if (const std::string line = cpu_note(runs, gpu.built, gpu.missing); !line.empty()) complain(line);
}

void add_set(Arguments& arguments, std::vector<std::string>& overrides) {
  arguments.texts("--set", overrides, "SECTION.KEY=VALUE", "Override a value of the config; can be repeated");
}

void add_root(Arguments& arguments, std::string& root, const std::string& initial) {
  root = initial;
  arguments.text("--out", root, "DIR", "Folder for the runs, with one subfolder per run");
}

namespace {

// Exits without destructors, since threads of the process group may hang while waiting for a lost rank.
[[noreturn]] void end_at_once(const GroupEnded& end) {
  const bool lost = end.code() == Exit::lost_rank;
  if (!end.already_reported())
    complain(end.what() + std::string(lost ? "; the same command resumes the run, with any number of ranks" : ""));
  ::_exit(static_cast<int>(end.code()));
}

// Prepares the run. There is nothing to save yet, so a stop request to one rank ends all ranks at once.
PreparedRun prepared(const ResolvedConfig& config, ProcessGroup* group) {
  std::optional<Ticker> ticker;
  if (group != nullptr) {
    ticker.emplace([group] {
      if (stop_requested() || group->stop_asked() || group->ended())
        end_at_once(group->fail(Exit::stopped, "[train] stopped before its first update"));
    });
  }
  return PreparedRun(config, group);
}

// For rank 0, which writes the files, or for a single process (no group).
Exit work_and_write(const ResolvedConfig& config, const std::string& root, bool machine, int shared_by,
                    ProcessGroup* group) {
  const std::string folder = root + "/" + config.run_id;
  const auto tell_ranks = [&](Order order) {
    if (group != nullptr) group->broadcast(order);
  };
  const auto finished = [&] {
    if (!has_result(folder)) return false;
    if (const std::string line = kept_label(config, folder); !line.empty()) complain(line);
    return true;
  };
  if (finished()) {
    tell_ranks(Order::done);
    return Exit::done;
  }
  tell_ranks(Order::go_on);
  PreparedRun run = prepared(config, group);
  const GracefulStop saves;
  RunProgressReport people(run_names({config}).front(), standard_error());
  const auto say = [&](const std::string& line) { machine ? complain(line) : people.say(line); };
  const auto tell = [&](const RunProgress& p) { machine ? machine_line(p) : people.report(p); };
  const auto stop = [group] {
    if (group != nullptr) group->alive();
    return stop_requested() || (group != nullptr && (group->stop_asked() || group->ended()));
  };
  const auto waiting = [&](const std::string& line) {
    say(line);
    tell({"waiting", 0, config.values.train.updates, 0, -1});
  };
  const auto store = claim(config, root, waiting, stop);
  for (const auto& line : store->restored()) say("warning: " + line);
  if (finished()) {
    tell_ranks(Order::done);
    return Exit::done;
  }
  tell_ranks(Order::go_on);
  warn_about_slow_blas();
  TrainHooks hooks;
  hooks.stop = [&] { return stop() || store->lost(); };
  hooks.saving = defer_exit;
  hooks.shared_by = shared_by;
  hooks.warning = [&](const std::string& line) { say("warning: " + line); };
  hooks.progress = [&](const TrainProgress& p) { tell(in_words(p)); };
  std::optional<Ticker> ticker;
  if (!machine) {
    ticker.emplace([&people, group, said = false]() mutable {
      people.tick();
      if (said || !(stop_requested() || (group != nullptr && group->stop_asked()))) return;
      said = true;
      people.say("[train] stopping after this update and saving; another signal stops at once");
    });
  }
  const RunStatus status = train(run, *store, hooks);
  ticker.reset();
  if (status != RunStatus::stopped) return Exit::done;
  say("[train] stopped, the same command resumes it, " + folder);
  return Exit::stopped;
}

Exit follow_writer(const ResolvedConfig& config, ProcessGroup& group) {
  if (group.broadcast(Order::go_on) == Order::done) return Exit::done;
  PreparedRun run = prepared(config, &group);
  if (group.broadcast(Order::go_on) == Order::done) return Exit::done;
  TrainHooks hooks;
  hooks.stop = [] { return stop_requested(); };
  return follow(run, hooks) == RunStatus::stopped ? Exit::stopped : Exit::done;
}

// Ranks that differ in one of these would not make the same updates.
std::string identity(const ResolvedConfig& config) {
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

Exit work_on(const ResolvedConfig& config, const std::string& root, bool machine, int shared_by) {
  std::signal(SIGPIPE, SIG_IGN);
  return work_and_write(config, root, machine, shared_by, nullptr);
}

Exit work_together(const ResolvedConfig& config, const std::string& root, const RankPlace& place) {
  std::signal(SIGPIPE, SIG_IGN);
  check_world(config.values, place);
  const bool gpu = !device_of(config.values.train).is_cpu();
  if (place.size == 1 && group_backend(gpu).empty()) return work_and_write(config, root, false, 1, nullptr);
  std::unique_ptr<ProcessGroup> group;
  try {
    group = join_group(place, identity(config), gpu);
    const GracefulStop together;
    group->listen(stop_requested);
    group->end_with(end_at_once);
    const Exit code =
        group->writes() ? work_and_write(config, root, false, 1, group.get()) : follow_writer(config, *group);
    group->leave();
    return code;
  } catch (const GroupEnded& end) {
    end_at_once(end);
  } catch (const std::exception& error) {
    if (!group) throw;
    const Failure failure = failure_of(error);
    end_at_once(group->fail(failure.code, failure.line));
  }
}

}  // namespace sb::cli
