// Short names for rows and scales.
#pragma once
#include <functional>
#include <set>

#include "report/labels.h"

namespace sb {

// A small set of numbers in [first, end), chosen greedily, for which distinct(set) reaches `most`.
std::set<size_t> fewest_telling(size_t first, size_t end, size_t most,
                                const std::function<size_t(const std::set<size_t>&)>& distinct);
// The scale (configs/scales) whose grammar and length of sequences this group has: "quick", "small", "paper", or "".
std::string scale_name(const Group& group);
std::string scale_name(const std::map<std::string, std::string>& config);  // the config of a result
// If every group has the values of a named scale, replaces the axis of vocab, depth etc. by this name and removes the
// axis of the sequence length, which follows from the scale.
void name_scales(const std::vector<Group>& groups, std::vector<LabelAxis>& columns);
// Labels::row_names of these groups.
std::map<std::vector<std::string>, std::string> row_names(const std::vector<Group>& groups, const Labels& labels);

}  // namespace sb
