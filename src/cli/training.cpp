#include "cli/training.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "base/number.h"
#include "cli/blas.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "kernels/cpu/block_pool.h"
#include "runs/run_store.h"

namespace sb::cli {
namespace {

// OpenMP ends the process where it cannot start a thread, so that is tried here. Results do not depend on the number.
int threads_to_be_had(int wanted) {
  std::mutex gate;
  std::vector<std::jthread> others;
  const std::unique_lock closed(gate);
  try {
    while (static_cast<int>(others.size()) + 1 < wanted)
      others.emplace_back([&gate] { const std::lock_guard wait(gate); });
  } catch (const std::system_error&) {
    complain("warning: the system allows " + std::to_string(others.size() + 1) + " threads of the " +
             std::to_string(wanted) + " asked for");
  }
  return static_cast<int>(others.size()) + 1;
}

class HumanReport {
 public:
  void operator()(const TrainProgress& p) {
    if (p.phase == "train") {
      if (!bar_) bar_.emplace("updates", static_cast<uint64_t>(p.updates));
      bar_->update(static_cast<uint64_t>(p.update));
    } else if (p.phase != said_) {
      bar_.reset();
      complain(p.phase == "valid"
                   ? "update " + std::to_string(p.update) + " of " + std::to_string(p.updates) + ": loss " +
                         fixed(p.loss, 4) + (p.valid < 0 ? "" : ", last valid accuracy " + fixed(p.valid, 4)) +
                         "; evaluating"
                   : "evaluating: " + p.phase);
    }
    said_ = p.phase;
  }

 private:
  std::optional<Progress> bar_;
  std::string said_;
};

void machine_line(const TrainProgress& p) {
  const Json line = {
      {"phase", p.phase}, {"update", p.update}, {"updates", p.updates}, {"loss", p.loss}, {"valid", p.valid}};
  print(line.dump() + "\n");
  finish_output();
}

}  // namespace

void use_threads(int threads) {
  cpu::pool_tensor_memory();
  const int wanted = threads > 0 ? threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  at::set_num_threads(threads_to_be_had(wanted));
}

void warn_about_slow_blas() {
  if (blas_library() != "reference") return;
  complain(
      "warning: the linear algebra behind libtorch is the slow reference one. Our models do not use it, but mixers of "
      "your own and the comparisons of bench do: install libopenblas0-openmp.");
}

void add_set(Arguments& arguments, std::vector<std::string>& overrides) {
  arguments.texts("--set", overrides, "SECTION.KEY=VALUE", "Replace a value of the config; may be given many times");
}

void add_root(Arguments& arguments, std::string& root, const std::string& initial) {
  root = initial;
  arguments.text("--out", root, "DIR", "Folder the runs live in, one folder a run");
}

Exit work_on(const ResolvedConfig& config, const std::string& root, bool machine) {
  if (has_result(root + "/" + config.run_id)) return Exit::done;
  PreparedRun run(config);
  RunStore store(root, config);
  for (const auto& line : store.restored()) complain("warning: " + line);
  if (has_result(store.folder())) return Exit::done;
  warn_about_slow_blas();
  HumanReport human;
  TrainHooks hooks;
  hooks.stop = [] { return stop_requested(); };
  hooks.warning = [](const std::string& line) { complain("warning: " + line); };
  hooks.progress = [&](const TrainProgress& p) { machine ? machine_line(p) : human(p); };
  if (train(run, store, hooks) == RunStatus::stopped) {
    complain("[train] stopped, the same command resumes it, " + store.folder());
    return Exit::stopped;
  }
  return Exit::done;
}

}  // namespace sb::cli
