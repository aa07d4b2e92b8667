// `match`, `match_target` and `match_step` of [suite]: the sizes that every network of a suite is brought to.
#pragma once
#include <optional>
#include <vector>

#include "runs/config_file.h"
#include "runs/size_match.h"

namespace sb {

struct SuiteTargets {
  std::optional<MatchedSize> by;
  std::vector<double> sizes;
  int step = 1;
  Place place;  // of `match`, or of what stands there without it
};

// True: the member was one of the three, and was taken. Throws bad_input "[suite.KEY] …" for what is no value of it.
bool take_match_key(std::optional<SuiteTargets>& match, const TomlMember& member);
// Throws bad_input where one of them lacks another, or nobody here knows the models.
void check_match(const std::optional<SuiteTargets>& match, const ModelRules& rules);

}  // namespace sb
