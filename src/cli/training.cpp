#include "cli/training.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <optional>
#include <thread>

#include "base/number.h"
#include "base/stopwatch.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "kernels/cpu/block_pool.h"
#include "runs/run_store.h"

namespace sb::cli {
namespace {

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
  at::set_num_threads(threads > 0 ? threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
}

void warn_about_slow_blas() {
  constexpr int64_t n = 256;
  const at::Tensor a = at::rand({n, n}), b = at::rand({n, n});
  double best = 1e9;
  for (int i = 0; i < 3; ++i) best = std::min(best, seconds_of([&] { at::mm(a, b); }));
  const double rate = 2.0 * n * n * n / best / 1e9;
  if (rate < 8) {
    complain("warning: libtorch's matrix products run at " + fixed(rate, 1) +
             " GFLOP/s, as without OpenBLAS. Our models do not use them, but mixers of your own and the comparisons of "
             "bench do: install libopenblas0-openmp.");
  }
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
