#pragma once
#include "kernels/operations.h"

namespace sb::cpu {

// 0 where an element is dropped, 1 / (1 - p) elsewhere: of the shape of x [B,T,C], or [B,1,C] when tied over time.
at::Tensor dropout_factors(const op::Dropout& op, const at::Tensor& x);

}  // namespace sb::cpu
