// Names of protocols in the findings. Runs of different protocols are never compared or averaged.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "findings/claims.h"

namespace sb {

// JSON text of train.schedule in a run without one.
constexpr const char* kNoSchedule = R"("{}")";
// Keys that change what training samples are, with the values of runs whose configs do not have the keys.
const ConfigMap& usual_training();

constexpr const char* corrected_protocol = "corrected";
constexpr const char* published_protocol = "published";

// "corrected", "published", "corrected but dropout 0.2": from the keys of a config ("section.key" or "model.switch
// NAME", values as JSON). Keys in `ignored` may have any value, and so may the learning rate: it is chosen.
std::string protocol_of(ConfigMap config, const std::set<std::string>& ignored = {});
// The protocol of the group's chosen setting.
std::string protocol_of(const Rows& rows, const Group& group, const std::set<std::string>& ignored = {});
// The protocol of a run without a result.
std::string protocol_of(const AbsentRun& run, const std::set<std::string>& ignored = {});
// The protocols of all runs: corrected, published, then the others by name.
std::vector<std::string> protocols_of(const Rows& rows, const std::set<std::string>& ignored = {});

// Keys that may differ from the protocol in the runs of a comparison: those of its arms, and for kinds other than gaps
// residual and convolution, which the corrected protocol chooses on gaps.
std::set<std::string> keys_beside_protocol(const Comparison& comparison);

// The value of a config key in a group's config; "true" or "false" for a quirk.
std::string key_of(const ConfigMap& config, const std::string& key);

}  // namespace sb
