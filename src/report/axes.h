// Which keys of a config a table averages over and which it selects over; everything else tells cells apart.
#pragma once
#include <string>
#include <vector>

#include "runs/suite.h"

namespace sb {

struct Axes {
  std::vector<std::string> select = {"train.lr", "train.warmup"};
  std::vector<std::string> average = {"grammar.seed", "train.seed"};

  void add_select(const std::string& key);  // no key twice
  void add_average(const std::string& key);
};

// "model.d_state" as Result::config spells it: "model.switch d_state".
std::string config_key(const std::string& axis);
std::string axis_name(const std::string& config_key);  // and back

Axes axes_of(const Suite& suite);
// ROOT/suite.json, sealed: the axes that suites of this folder named beyond the usual ones, one entry a suite.
void record_suite(const std::string& root, const Suite& suite);
// The usual axes and those of every recorded suite; `notes` says where each of them comes from, or that the file is
// damaged and not used.
Axes recorded_axes(const std::string& root, std::vector<std::string>& notes);

}  // namespace sb
