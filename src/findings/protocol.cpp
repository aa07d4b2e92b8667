#include "findings/protocol.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

std::set<std::string> quirks_of(const ConfigMap& config) {
  std::set<std::string> out;
  const auto it = config.find("quirks");
  const std::string all = it == config.end() ? "" : plain_value(it->second);
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find(' ', at), all.size());
    out.insert(all.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string key_of(const ConfigMap& config, const std::string& key) {
  if (key.starts_with("quirks.")) return quirks_of(config).contains(key.substr(7)) ? "true" : "false";
  const auto it = config.find(key);
  return it == config.end() ? std::string() : it->second;
}

std::string protocol_of(const ConfigMap& config, const std::set<std::string>& ignored) {
  const auto on = [&](const std::string& quirk) {
    return !ignored.contains("quirks." + quirk) && key_of(config, "quirks." + quirk) == "true";
  };
  const bool stops = key_of(config, "train.dropout_until") == "78" || on("dropout_stops");
  if (on("first_lr_zero") && (stops || ignored.contains("train.dropout_until"))) return published_protocol;
  std::vector<std::string> differs;
  const std::string dropout = key_of(config, "model.dropout");
  if (!ignored.contains("model.dropout") && parse_finite(dropout).value_or(0) != 0)
    differs.push_back("dropout " + plain_value(dropout));
  for (const auto& quirk : quirks_of(config))
    if (on(quirk)) differs.push_back(printable(quirk));
  return differs.empty() ? corrected_protocol : formatted("{} but {}", corrected_protocol, joined(differs, ", "));
}

std::vector<std::string> protocols_of(const Rows& rows, const std::set<std::string>& ignored) {
  std::set<std::string> found;
  for (const auto& group : rows.groups) found.insert(protocol_of(group.config, ignored));
  for (const auto& run : rows.absent)
    if (!run.config.empty()) found.insert(protocol_of(run.config, ignored));
  std::vector<std::string> out;
  for (const char* first : {corrected_protocol, published_protocol})
    if (found.erase(first) > 0) out.emplace_back(first);
  out.insert(out.end(), found.begin(), found.end());
  return out;
}

}  // namespace sb
