// Parameters of one layer that its gates are computed from.
#pragma once
#include <cstdint>
#include <optional>

#include "runs/result.h"

namespace sb {

// Projections, biases and decay rates that forgetting (A_t) and the strength of writing are computed from. For the
// delta rule, whose A_t = I - beta k k^T depends on the keys, the key projection and its convolution are counted too
// unless `with_keys` is false. Nothing for models without such gates and for unknown models.
std::optional<int64_t> gate_parameters(const Result& result, bool with_keys = true);

}  // namespace sb
