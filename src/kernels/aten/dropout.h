#pragma once
#include "kernels/operations.h"

namespace sb::aten {

// The factors of cpu/bind/dropout.h in operations on tensors, for any device.
at::Tensor dropout_factors(const op::Dropout& op, const at::Tensor& x);

}  // namespace sb::aten
