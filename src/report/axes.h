// Axes of a table: the config keys it averages over and the keys it selects over. All other keys tell cells apart.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "store/run_tree.h"
#include "suites/suite.h"

namespace sb {

struct Axes {
  std::vector<std::string> select = {"train.lr", "train.warmup"};
  std::vector<std::string> average = {"grammar.seed", "train.seed", "train.order_seed"};

  void add_select(const std::string& key);  // ignores a key that is already there
  void add_average(const std::string& key);
};

// "model.d_state" as spelled in Result::config: "model.switch d_state".
std::string config_key(const std::string& axis);
std::string axis_name(const std::string& config_key);  // and back

Axes axes_of(const Suite& suite);
// Records a suite in ROOT/suite.json, sealed, one entry per suite: the axes that the suite adds to the default ones,
// and the sizes it matched. Takes a lock and waits for it as wait_for_lock does. Returns warnings: a damaged file was
// set aside, or nothing was recorded.
std::vector<std::string> record_suite(const std::string& root, const Suite& suite, const std::function<bool()>& stop,
                                      double patience_seconds = 10);
// Why ROOT/suite.json cannot be used; empty if it can or does not exist.
std::string record_fault(const std::string& root, const RunTree& tree = RunTree::disk());
// The default axes and those of every suite recorded in these folders. `notes` says where each axis comes from, which
// networks were matched and how closely, and which files are damaged and ignored. If suites disagree on a key, a note
// says so and the key is neither selected nor averaged over. Matched networks for which `shown` is false are not noted.
Axes recorded_axes(const std::vector<std::string>& roots, std::vector<std::string>& notes,
                   const RunTree& tree = RunTree::disk(), const std::function<bool(const MatchedNetwork&)>& shown = {});

}  // namespace sb
