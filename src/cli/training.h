// Shared by commands around training: reading a config with the rules of models, working on one run, threads.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/arguments.h"
#include "config/config_file.h"
#include "config/rank_place.h"
#include "store/run_tree.h"
#include "train/rules.h"

namespace sb::cli {

// Sets the number of threads. 0: all cores, divided by `processes`. Also makes large tensors keep their memory from now
// on.
void use_threads(int threads, int processes = 1);
// Warns on standard error if torch uses the slow reference BLAS.
void warn_about_slow_blas();

struct Gpus {
  bool built = false;  // this build can use them
  int count = 0;
  std::string missing;  // why no GPU can be used; empty: GPUs can be used
};
Gpus usable_gpus();

// Makes a rank on GPUs see only the GPU of its local rank. Call before any use of CUDA.
void see_own_gpu(const RankPlace& place);
bool gpus_are_hidden();  // CUDA_VISIBLE_DEVICES is set, but empty
// Resolves a config. If its device is not available because the rank has no GPU, the error names the rank.
ResolvedConfig with_gpu(const RankPlace& place, const std::function<ResolvedConfig()>& resolve);
// Throws bad_input if `auto` resolved to the CPU because the machine has fewer GPUs than ranks.
void expect_gpu(const ResolvedConfig& config, const RankPlace& place);

// Reports on standard error if runs fall back to the CPU because the GPU cannot be used, although this build supports
// it.
void tell_unusable_gpu(const std::vector<ResolvedConfig>& runs);

void add_set(Arguments& arguments, std::vector<std::string>& overrides);
void add_root(Arguments& arguments, std::string& root, const std::string& initial);

// Works on the run until it is finished or stopped; an existing result is kept. Progress goes to standard error, or as
// one JSON object per line to standard output if `machine` is set.
Exit work_on(const ResolvedConfig& config, const std::string& root, bool machine, int shared_by = 1);
// The same as one of several ranks; the first rank writes and reports. Does not return if a rank is lost.
Exit work_together(const ResolvedConfig& config, const std::string& root, const RankPlace& place);

}  // namespace sb::cli
