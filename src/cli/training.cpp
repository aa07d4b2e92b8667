#include "cli/training.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <link.h>
#include <omp.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/format.h"
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
#include "train/gpu.h"
#include "train/ranks/work_on_run.h"

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
    complain("warning: the system allows only " + counted(others.size() + 1, "thread") + " of the " +
             std::to_string(wanted) + " requested");
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

[[noreturn]] void end_at_once(const GroupEnded& end) {
  const bool lost = end.code() == Exit::lost_rank;
  if (!end.already_reported())
    complain(end.what() + std::string(lost ? "; the same command resumes the run, with any number of ranks" : ""));
  ::_exit(static_cast<int>(end.code()));
}

// What the work on a run reports: for people on standard error, or for the suite that started this process on standard
// output.
class RunOutput {
 public:
  RunOutput(const ResolvedConfig& config, std::string folder, bool machine)
      : config_(config), folder_(std::move(folder)), machine_(machine) {}

  WorkHooks hooks() {
    WorkHooks out;
    out.stop_requested = stop_requested;
    out.stop_within = stop_within;
    out.graceful_stop = [] { return std::make_shared<GracefulStop>(); };
    out.display = [this] {
      auto people = std::make_shared<RunProgressReport>(run_names({config_}).front(), standard_error());
      people_ = people.get();
      return people;
    };
    out.saving = defer_exit;
    out.kept = [this] {
      if (const std::string line = kept_label(config_, folder_); !line.empty()) complain(line);
    };
    out.waiting = [this](const std::string& line) {
      say(line);
      tell({"waiting", 0, config_.values.train.updates, 0, -1});
    };
    out.warning = [this](const std::string& line) { say("warning: " + line); };
    out.resumed = [this](int64_t updates) {
      if (!machine_) say(formatted("[train] resuming after update {} of {}", updates, config_.values.train.updates));
    };
    out.begins = warn_about_slow_blas;
    out.progress = [this](const TrainProgress& p) { tell(in_words(p)); };
    if (!machine_) out.tick = [this](bool stopping) { tick(stopping); };
    out.stopped = [this] { say("[train] stopped, the same command resumes it, " + folder_); };
    return out;
  }

 private:
  void say(const std::string& line) { machine_ ? complain(line) : people_->say(line); }
  void tell(const RunProgress& p) { machine_ ? machine_line(p) : people_->report(p); }
  void tick(bool stopping) {
    people_->tick();
    if (!stopping || said_stopping_) return;
    said_stopping_ = true;
    people_->say("[train] stopping after this update and saving; another signal stops at once");
  }

  const ResolvedConfig& config_;
  std::string folder_;
  bool machine_;
  RunProgressReport* people_ = nullptr;
  bool said_stopping_ = false;
};

Exit code_of(RunStatus status) {
  return status == RunStatus::stopped ? Exit::stopped : Exit::done;
}

}  // namespace

Exit work_on(const ResolvedConfig& config, const std::string& root, bool machine, int shared_by) {
  std::signal(SIGPIPE, SIG_IGN);
  RunOutput output(config, root + "/" + config.run_id, machine);
  WorkHooks hooks = output.hooks();
  hooks.shared_by = shared_by;
  return code_of(work_on_run(config, root, hooks));
}

Exit work_together(const ResolvedConfig& config, const std::string& root, const RankPlace& place) {
  std::signal(SIGPIPE, SIG_IGN);
  RunOutput output(config, root + "/" + config.run_id, false);
  const auto failure = [](const std::exception& error) {
    const Failure seen = failure_of(error);
    return Error(seen.code, seen.line);
  };
  return code_of(work_on_run(config, root, place, output.hooks(), {failure, end_at_once}));
}

}  // namespace sb::cli
