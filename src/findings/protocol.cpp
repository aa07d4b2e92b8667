#include "findings/protocol.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "config/protocol.h"
#include "findings/arms.h"

namespace sb {
namespace {

std::set<std::string> quirks_of(const ConfigMap& config) {
  const auto it = config.find("quirks");
  const auto all = split(it == config.end() ? "" : plain_value(it->second), ' ');
  std::set<std::string> out(all.begin(), all.end());
  out.erase("");
  return out;
}

// A group's config in the form of Result::config.
ConfigMap unfolded(ConfigMap config) {
  for (const auto& quirk : quirks_of(config)) config["quirks." + quirk] = "true";
  config.erase("quirks");
  return config;
}

// Runs of models trained elsewhere have no protocol.
std::string label_of(const ConfigMap& config) {
  const std::string label = protocol_label(config);
  return label.empty() ? "unknown" : label;
}

}  // namespace

const ConfigMap& usual_training() {
  static const ConfigMap keys = {{"train.schedule", kNoSchedule}, {"train.position_stretch", "1"}};
  return keys;
}

std::string key_of(const ConfigMap& config, const std::string& key) {
  if (key.starts_with("quirks.")) return quirks_of(config).contains(key.substr(7)) ? "true" : "false";
  const auto it = config.find(key);
  if (it != config.end()) return it->second;
  const auto usual = usual_training().find(key);
  return usual == usual_training().end() ? "" : usual->second;
}

std::string protocol_of(ConfigMap config, const std::set<std::string>& ignored) {
  config.erase("train.lr");
  for (const auto& key : ignored) {
    config.erase(key);
    if (key.starts_with("model.")) config.erase("model.switch " + key.substr(6));
  }
  if (!ignored.contains("model.residual")) return label_of(config);
  // If the residual is ignored, tries all residuals and takes the label with the fewest differences.
  std::string nearest;
  for (const char* residual : {"post", "double", "pre"}) {
    config["model.residual"] = json_quoted(residual);
    const std::string label = label_of(config);
    if (nearest.empty() || label.size() < nearest.size()) nearest = label;
  }
  return nearest;
}

std::string protocol_of(const Rows& rows, const Group& group, const std::set<std::string>& ignored) {
  const Result& result = group.averaged.empty() ? some_result(rows, group) : rows.runs[group.averaged.front()].result;
  return protocol_of(result.config, ignored);
}

std::string protocol_of(const AbsentRun& run, const std::set<std::string>& ignored) {
  return protocol_of(unfolded(run.config), ignored);
}

std::set<std::string> keys_beside_protocol(const Comparison& comparison) {
  std::set<std::string> out;
  if (!comparison.kind.empty()) out = {"model.residual", "model.conv"};
  for (const auto* arm : {&comparison.a, &comparison.b})
    for (const auto& model : *arm)
      for (const auto& [key, value] : model.keys) out.insert(key);
  return out;
}

std::vector<std::string> protocols_of(const Rows& rows, const std::set<std::string>& ignored) {
  std::set<std::string> found;
  for (const auto& group : rows.groups) found.insert(protocol_of(rows, group, ignored));
  for (const auto& run : rows.absent)
    if (!run.config.empty()) found.insert(protocol_of(run, ignored));
  std::vector<std::string> out;
  for (const char* first : {corrected_protocol, published_protocol})
    if (found.erase(first) > 0) out.emplace_back(first);
  out.insert(out.end(), found.begin(), found.end());
  return out;
}

}  // namespace sb
