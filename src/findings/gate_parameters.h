// Number of parameters of one layer that determine its gates.
#pragma once
#include <cstdint>
#include <optional>

#include "store/result.h"

namespace sb {

// Counts the projections, biases and decay rates from which forgetting (A_t) and the write strength are computed. For
// the delta rule, A_t = I - beta k k^T depends on the keys, so the key projection and its convolution count too, unless
// `with_keys` is false. nullopt for unknown models and models without such gates.
std::optional<int64_t> gate_parameters(const Result& result, bool with_keys = true);

}  // namespace sb
