#pragma once
#include "kernels/operations.h"

namespace sb::aten {

// Same as cpu::dropout_factors (cpu/bind/dropout.h), in ATen operations for any device.
at::Tensor dropout_factors(const op::Dropout& op, const at::Tensor& x);

}  // namespace sb::aten
