// Which keys of a config a table averages over and which it selects over; everything else tells cells apart.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runs/run_tree.h"
#include "runs/suite.h"

namespace sb {

struct Axes {
  std::vector<std::string> select = {"train.lr", "train.warmup"};
  std::vector<std::string> average = {"grammar.seed", "train.seed", "train.order_seed"};

  void add_select(const std::string& key);  // no key twice
  void add_average(const std::string& key);
};

// "model.d_state" as Result::config spells it: "model.switch d_state".
std::string config_key(const std::string& axis);
std::string axis_name(const std::string& config_key);  // and back

Axes axes_of(const Suite& suite);
// ROOT/suite.json, sealed: the axes that suites of this folder named beyond the usual ones and the sizes they matched,
// one entry a suite.
// Written under a lock, waited for as wait_for_lock does. Warnings: a damaged file was set aside, or nothing was
// recorded.
std::vector<std::string> record_suite(const std::string& root, const Suite& suite, const std::function<bool()>& stop,
                                      double patience_seconds = 10);
// Why ROOT/suite.json cannot be used; empty: it can, or there is none.
std::string record_fault(const std::string& root, const RunTree& tree = RunTree::disk());
// The usual axes and those of every suite recorded in these folders; `notes` says where each of them comes from, what
// networks were matched and how closely, that a file is damaged and not used, or that suites disagree on a key: it is
// then neither selected nor averaged over.
Axes recorded_axes(const std::vector<std::string>& roots, std::vector<std::string>& notes,
                   const RunTree& tree = RunTree::disk());

}  // namespace sb
