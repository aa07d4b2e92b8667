// Parameters of one layer that its gates are computed from.
#pragma once
#include <cstdint>
#include <optional>

#include "runs/result.h"

namespace sb {

// What forgetting (A_t) and the strength of writing are a function of: projections, biases and decay rates of the
// gates, and for the delta rule, whose A_t = I - beta k k^T, the keys with their convolution. Nothing for models
// without such gates and for those it does not know.
std::optional<int64_t> gate_parameters(const Result& result);

}  // namespace sb
