#pragma once
#include "kernels/operations.h"

namespace sb::cpu {

// Factors of a dropout: 0 for dropped elements, kept_scale(p) for others. [B,T,C] like x, or [B,1,C] if tied over time.
at::Tensor dropout_factors(const op::Dropout& op, const at::Tensor& x);

}  // namespace sb::cpu
