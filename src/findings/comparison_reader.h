// Reads the comparisons of a claim from TOML.
#pragma once
#include <vector>

#include "config/toml_tree.h"
#include "findings/claims.h"

namespace sb {

// Values that a claim sets for all of its comparisons.
struct ComparisonDefaults {
  Statistic statistic = Statistic::accuracy;
  Asks asks = Asks::above;
  double delta = .01;
  std::optional<double> in_distribution;
  const TomlValue* keys = nullptr;      // parsed once the kind of task is known
  const TomlValue* at_scale = nullptr;  // tables of keys, by scale

  // Stores the member; returns false if it is none of these fields.
  bool take(const TomlMember& member);
};

// Converts {task.gap_max = 10, …} to the form of Result::config. `kind`: of the task, whose own keys are allowed.
ConfigMap config_keys_of(const TomlValue& value, const std::string& kind = kGapsKind);
// Appends every combination of the row's lists.
void read_comparisons(const ComparisonDefaults& defaults, const TomlValue& row, std::vector<Comparison>& out);

}  // namespace sb
