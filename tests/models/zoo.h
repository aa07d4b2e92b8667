// Every registered model under its own name, and values for any switch: suites that a new mixer joins by being there.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/torch_pch.h"
#include "models/registry.h"

namespace sb::test {

inline std::string by_model(const testing::TestParamInfo<std::string>& made) {
  return made.param;
}

// A few values the switch takes, the small ones that fit a width of 16.
inline std::vector<std::string> trial_values(const Switch& of) {
  std::vector<SwitchValue> candidates = {true, false};
  for (const int64_t v : {0, 1, 2, 4}) candidates.emplace_back(v);
  for (const double v : {0.5, 1., 2., 500.}) candidates.emplace_back(v);
  std::vector<std::string> out;
  for (const auto& value : candidates)
    if (of.takes(value)) out.push_back(switch_text(value));
  return out;
}

// Every switch of the model at another value than its initial one.
inline Switches turned(const std::string& model) {
  Switches out;
  for (const auto& each : find_model(model).switches)
    for (const auto& value : trial_values(each))
      if (value != each.initial_text()) {
        out.emplace(each.name(), value);
        break;
      }
  return out;
}

// Replaces parameters that are all zero by noise: behind a zero matrix, whatever a layer computes would pass.
inline void fill_zeros(const ParameterList& parameters) {
  const at::NoGradGuard no_gradients;
  at::manual_seed(3);
  for (const auto& parameter : parameters.all()) {
    auto value = parameter.value.detach();
    if (value.count_nonzero().item<int64_t>() == 0) value.copy_(0.3 * at::randn_like(value));
  }
}

}  // namespace sb::test
