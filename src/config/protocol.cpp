#include "config/protocol.h"

#include <optional>

#include "base/format.h"
#include "base/json.h"
#include "base/model_facts.h"
#include "base/number.h"

namespace sb {
namespace {

constexpr double kPublishedRate = 1e-3;

using Config = std::map<std::string, std::string>;

const std::string* find(const Config& config, const std::string& key) {
  auto it = config.find(key);
  if (it == config.end() && key.starts_with("model.")) it = config.find("model.switch " + key.substr(6));
  return it == config.end() ? nullptr : &it->second;
}

double number(const Config& config, const std::string& key) {
  const std::string* text = find(config, key);
  return text ? parse_finite(*text).value_or(0) : 0;
}

std::string text_of(const std::string& json) {
  return json.size() >= 2 && json.front() == '"' ? json.substr(1, json.size() - 2) : json;
}

// Whether another value of the key could change a number of this run.
bool acts(const std::string& key, const Config& config, const std::string& model) {
  if (key == "train.dropout_until") return number(config, "model.dropout") > 0;
  if (key == "quirks.sum_accumulated") return number(config, "train.accumulate") > 1;
  if (key == "quirks.first_lr_zero") return number(config, "train.warmup") > 0;
  if (key == "quirks.delta_bf16") return model_facts(model).published_in_bf16;
  return true;
}

bool same(const std::string& a, const std::string& b) {
  const auto x = parse_finite(a), y = parse_finite(b);
  return x && y ? *x == *y : a == b;
}

// "residual pre", "dropout 0.2": values of the run that differ from the protocol.
std::vector<std::string> differences(Protocol protocol, const Config& config, const std::string& model) {
  std::vector<ProtocolSetting> settings = protocol_settings(protocol, model);
  if (protocol == Protocol::published) settings.push_back({"train.lr", kPublishedRate});
  settings.push_back({"model.conv", int64_t{0}});
  std::vector<std::string> out;
  for (const auto& [key, value] : settings) {
    const std::string* own = find(config, key);
    if (!own || !acts(key, config, model) || same(text_of(*own), text_of(json_text(value)))) continue;
    const std::string name = key.substr(key.find('.') + 1), plain = text_of(*own);
    out.push_back(plain == "true" ? name : plain == "false" ? "no " + name : name + " " + plain);
  }
  return out;
}

}  // namespace

std::vector<ProtocolSetting> protocol_settings(Protocol protocol, const std::string& model) {
  const bool published = protocol == Protocol::published;
  std::vector<ProtocolSetting> out = {{"model.dropout", published ? 0.2 : 0.0},
                                      {"quirks.first_lr_zero", published},
                                      {"quirks.delta_bf16", published},
                                      {"quirks.sum_accumulated", published}};
  if (published) out.push_back({"train.dropout_until", int64_t{78}});
  const ModelFacts facts = model_facts(model);
  out.push_back({"model.residual", std::string(to_string(published ? facts.published : facts.corrected))});
  return out;
}

std::string protocol_label(const std::map<std::string, std::string>& config) {
  const std::string* model = find(config, "model.name");
  if (!model || !find(config, "model.residual")) return "";
  const std::string name = text_of(*model);
  const auto corrected = differences(Protocol::corrected, config, name),
             published = differences(Protocol::published, config, name);
  const bool nearer = published.size() < corrected.size();
  const auto& rest = nearer ? published : corrected;
  const std::string word = to_string(nearer ? Protocol::published : Protocol::corrected);
  return rest.empty() ? word : formatted("{} but {}", word, joined(rest, ", "));
}

}  // namespace sb
