// Which groups of runs are an arm of a comparison, by their resolved configs.
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
bool meets(const Group& group, const ConfigMap& keys, const std::vector<std::string>& free);
// Whether the runs are of this scale, but for the keys that are free; `by_size`: of its sizes.
bool of_scale(const Rows& rows, const Group& group, const Scale& scale, const std::vector<std::string>& free,
              bool by_size = false);
// The same of runs that left no result, as far as can be known: by their parameters only where a group has that
// network.
bool may_be_of_scale(const Rows& rows, const Group& group, const Scale& scale, const std::vector<std::string>& free,
                     bool by_size = false);
// The arm's model with its switches and keys, other switches as in the paper. Free are sizes (heads, d_state) and what
// the corrected protocol chooses (conv).
bool fits(const Group& group, const ArmModel& arm);

}  // namespace sb
