// Rules of a zoo like the real one, so that this module is tested without libtorch.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "../base/expect.h"
#include "base/suggest.h"
#include "config/config_file.h"

namespace sb::test {

inline const std::map<std::string, std::vector<std::string>>& zoo() {
  static const std::map<std::string, std::vector<std::string>> models = {
      {"transformer", {"heads", "mlp", "rope_base", "conv"}},
      {"linear_attn", {"heads", "mlp"}},
      {"s4", {"d_state", "mlp"}},
      {"retnet", {"heads", "mlp"}},
      {"mamba", {"d_state", "complementary", "a_min", "short_conv", "output_gate", "mlp"}},
      {"mamba2", {"heads", "d_state", "complementary", "a_min", "short_conv", "output_gate", "mlp"}},
      {"gru", {"a_min", "mlp"}},
      {"gla", {"heads", "expand_k", "expand_v", "complementary", "a_min", "short_conv", "output_gate", "mlp"}},
      {"delta_net", {"heads", "expand_k", "expand_v", "negative_eigenvalues", "short_conv", "output_gate", "mlp"}},
      {"gated_delta_net",
       {"heads", "expand_k", "expand_v", "negative_eigenvalues", "short_conv", "output_gate", "a_min", "delta", "mlp"}},
      {"gated_delta_product",
       {"heads", "expand_k", "expand_v", "householder_factors", "negative_eigenvalues", "short_conv", "output_gate",
        "a_min", "mlp"}},
      {"kda", {"heads", "expand_k", "expand_v", "negative_eigenvalues", "short_conv", "output_gate", "a_min", "mlp"}},
      {"gated_delta_net2",
       {"heads", "expand_k", "expand_v", "negative_eigenvalues", "short_conv", "output_gate", "a_min", "mlp"}},
      {"rwkv7", {"heads", "mlp"}},
      {"mamba3", {"heads", "d_state", "output_gate", "a_min", "mlp"}},
      {"hgrn2", {"heads", "a_min", "mlp"}},
      {"fox", {"heads", "mlp"}},
      {"mlstm", {"heads", "expand_k", "expand_v", "output_gate", "mlp"}},
      {"mesa_net", {"heads", "short_conv", "a_min", "mlp"}},
      {"log_linear_mamba2", {"heads", "d_state", "a_min", "mlp"}},
  };
  return models;
}

inline ModelRules rules() {
  ModelRules out;
  for (const auto& [model, switches] : zoo()) out.switches.insert(out.switches.end(), switches.begin(), switches.end());
  out.checks.emplace_back([](const RunConfig& config) {
    const ModelSection& model = config.model;
    const auto found = zoo().find(model.name);
    std::vector<std::string> names;
    for (const auto& [name, switches] : zoo()) names.push_back(name);
    if (found == zoo().end()) throw bad_input("model.name", "unknown model" + did_you_mean(model.name, names));
    if (model.name == "transformer" && model.width == 960) throw bad_input("model.width", "no width 960");
    for (const auto& [key, text] : model.switches)
      if (std::find(found->second.begin(), found->second.end(), key) == found->second.end())
        throw bad_input("model." + key, model.name + " has no such switch");
  });
  // Parameters grow with the square of the width, the state of all but the Transformer with the width alone.
  out.match = [](const RunConfig& config, const SizeMatch& asked) -> SizeFound {
    const bool state = asked.by == MatchedSize::state;
    if (state && config.model.name == "transformer")
      throw bad_input("suite.match", "transformer: no width has any state");
    const auto size = [&](double width) { return state ? 64 * width : config.model.layers * width * width; };
    int64_t width = asked.step;
    while (size(static_cast<double>(width + asked.step)) <= asked.target) width += asked.step;
    const double found = size(static_cast<double>(width));
    if (std::abs(found - asked.target) > kMatchTolerance * asked.target)
      throw bad_input("suite.match", config.model.name + ": the nearest is width " + std::to_string(width));
    return {width, {}, found};
  };
  return out;
}

inline ResolvedConfig resolve_text(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Settings settings = parse_settings(text, "run.toml");
  add_overrides(settings, overrides);
  return resolve(settings, rules(), "run.toml");
}

inline std::string fault_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return error_line([&] { resolve_text(text, overrides); });
}

}  // namespace sb::test
