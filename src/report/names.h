// Internal to labels: short names for rows and scales.
#pragma once
#include "report/labels.h"

namespace sb {

// The scale (configs/scales) whose grammar and length of sequences this group has: "quick", "small", "paper", or "".
std::string scale_name(const Group& group);
std::string scale_name(const std::map<std::string, std::string>& config);  // the config of a result
// If every group has the values of a named scale, replaces the axis of vocab, depth etc. by this name and removes the
// axis of the sequence length, which follows from the scale.
void name_scales(const std::vector<Group>& groups, std::vector<LabelAxis>& columns);
// Labels::row_names of these groups.
std::map<std::vector<std::string>, std::string> row_names(const std::vector<Group>& groups, const Labels& labels);

}  // namespace sb
