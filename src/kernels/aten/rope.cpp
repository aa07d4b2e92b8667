#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::aten {

kernels::Tensors rope(const op::Rope& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor& x = in[0];
  const int64_t half = x.size(-1) / 2;
  const auto doubles = x.options().dtype(at::kDouble);
  // cpu::rope_rate, on the tensor's device
  const at::Tensor exponent = at::arange(half, x.options().dtype(at::kFloat)) / static_cast<float>(half);
  const at::Tensor rate = at::pow(op.base, exponent.to(at::kDouble)).to(at::kFloat).reciprocal().to(at::kDouble);
  const at::Tensor angle = at::arange(op.offset, op.offset + x.size(1), doubles).unsqueeze(-1) * rate * op.sense;
  const at::Tensor c = angle.cos().unsqueeze(1).to(x.scalar_type()), s = angle.sin().unsqueeze(1).to(x.scalar_type());
  const at::Tensor x1 = x.narrow(-1, 0, half), x2 = x.narrow(-1, half, half);
  return {at::cat({x1 * c + x2 * s, x2 * c - x1 * s}, -1)};
}

}  // namespace sb::aten
