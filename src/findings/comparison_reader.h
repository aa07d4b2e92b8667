// Reads the comparisons of a claim from TOML.
#pragma once
#include <vector>

#include "findings/claims.h"
#include "runs/toml_tree.h"

namespace sb {

// What a claim says for all of its comparisons.
struct ComparisonDefaults {
  Statistic statistic = Statistic::accuracy;
  Asks asks = Asks::above;
  double delta = .01;

  // False if the member is none of these.
  bool take(const TomlMember& member);
};

// {task.gap_max = 10, …} as Result::config has it.
ConfigMap config_keys_of(const TomlValue& value);
// Appends every combination of the row's lists.
void read_comparisons(const ComparisonDefaults& defaults, const TomlValue& row, std::vector<Comparison>& out);

}  // namespace sb
