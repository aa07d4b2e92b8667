// Decides by resolved configs which groups of runs form an arm of a comparison.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "findings/claims.h"

namespace sb {

bool contains(const std::vector<std::string>& all, const std::string& one);
// Any run of the group, finished or diverged.
const Result& some_result(const Rows& rows, const Group& group);
int64_t params_of(const Rows& rows, size_t group);
bool meets(const ConfigMap& config, const ConfigMap& keys, const std::vector<std::string>& free);
// Whether the runs belong to this scale, except for the keys in `free`. `by_size`: uses the range of sizes.
bool of_scale(const Rows& rows, const Group& group, const Scale& scale, const std::vector<std::string>& free,
              bool by_size = false);
// The same for runs without a result, as far as known: parameters are checked only if a group has the same network.
bool may_be_of_scale(const Rows& rows, const Group& group, const Scale& scale, const std::vector<std::string>& free,
                     bool by_size = false);
// Whether the group has the arm's model with its switches and keys, and other switches as in the paper. Sizes (heads,
// d_state) and choices of the corrected protocol (conv) may differ. A schedule and random positions in training must be
// named by the arm or in `named`.
bool fits(const Group& group, const ArmModel& arm, const ConfigMap& named = {});

}  // namespace sb
