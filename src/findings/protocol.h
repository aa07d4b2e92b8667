// The protocol of a run as findings name it. Runs of different protocols are never compared or averaged.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "report/rows.h"

namespace sb {

constexpr const char* corrected_protocol = "corrected";
constexpr const char* published_protocol = "published";

// "corrected", "published", "corrected but dropout 0.2": from the keys of a group's config, as if those of `ignored`
// had their corrected values.
std::string protocol_of(const ConfigMap& config, const std::set<std::string>& ignored = {});
// Of all groups: corrected, published, then the others in order of their names.
std::vector<std::string> protocols_of(const Rows& rows, const std::set<std::string>& ignored = {});

// The value of a key of the config in a group, "true" or "false" for a quirk.
std::string key_of(const ConfigMap& config, const std::string& key);

}  // namespace sb
