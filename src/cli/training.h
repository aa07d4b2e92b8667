// What the commands around training share: reading a config with the models' rules, working on one run, threads.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/arguments.h"
#include "runs/config_file.h"
#include "runs/run_tree.h"
#include "runs/world.h"
#include "train/rules.h"

namespace sb::cli {

// 0: all cores, or this process' part of them; large tensors keep their memory from here on.
void use_threads(int threads, int processes = 1);
// Warns on standard error where the linear algebra behind torch is the slow reference one.
void warn_about_slow_blas();

struct Cards {
  bool built = false;  // this build can use them
  int count = 0;
  std::string missing;  // why none can be used; empty: they can
};
Cards usable_cards();

// A rank of several on GPUs sees the card of its number alone from here on; before CUDA is asked for anything.
void see_own_card(const RankPlace& place);
// What `resolve` makes of a config. Where its device cannot be had since the rank has no card, that is said of the
// rank.
ResolvedConfig with_card(const RankPlace& place, const std::function<ResolvedConfig()>& resolve);
// Refuses a rank whose `auto` came to the CPU since the machine has fewer cards than ranks: others take their cards.
void expect_card(const ResolvedConfig& config, const RankPlace& place);

// Says on standard error where runs are of the CPU only since the GPU that this build is for cannot be used.
void tell_unusable_gpu(const std::vector<ResolvedConfig>& runs);

void add_set(Arguments& arguments, std::vector<std::string>& overrides);
void add_root(Arguments& arguments, std::string& root, const std::string& initial);

// One line where a finished run keeps another label than the config has; empty: it does not.
std::string kept_label(const ResolvedConfig& config, const std::string& folder, const RunTree& tree = RunTree::disk());

// Works on the run until it is over or stopped; an existing result is left alone. Progress goes to standard error, or
// as one JSON object a line to standard output where `machine` is set.
Exit work_on(const ResolvedConfig& config, const std::string& root, bool machine, int shared_by = 1);
// The same as one rank of several, of which the first writes and reports. Does not return where one is lost.
Exit work_together(const ResolvedConfig& config, const std::string& root, const RankPlace& place);

}  // namespace sb::cli
