// `match`, `match_target` and `match_step` of [suite]: the sizes that the networks of a suite are matched to.
#pragma once
#include <optional>
#include <vector>

#include "config/config_file.h"
#include "config/size_match.h"

namespace sb {

struct SuiteTargets {
  std::optional<MatchedSize> by;
  std::vector<double> sizes;
  int step = 1;
  Place place;  // location of `match`, or of the other keys if it is missing
};

// Returns true if the member is one of the three keys, and stores its value. Throws bad_input "[suite.KEY] …" for an
// invalid value.
bool take_match_key(std::optional<SuiteTargets>& match, const TomlMember& member);
// Throws bad_input if a required key is missing or `rules` cannot match sizes.
void check_match(const std::optional<SuiteTargets>& match, const ModelRules& rules);

}  // namespace sb
