#include <ATen/ATen.h>

#include "kernels/fused.h"
#include "kernels/operations.h"

namespace sb {

at::Tensor rope_rates(double base, int64_t half, const at::TensorOptions& like) {
  const at::Tensor exponent = at::arange(half, like.dtype(at::kFloat)) / static_cast<float>(half);
  return at::pow(base, exponent.to(at::kDouble)).to(at::kFloat).reciprocal().to(at::kDouble);
}

}  // namespace sb

namespace sb::aten {

kernels::Tensors rope(const op::Rope& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor& x = in[0];
  const int64_t half = x.size(-1) / 2;
  const at::Tensor rate = rope_rates(op.base, half, x.options());
  const at::Tensor angle = at::arange(op.offset, op.offset + x.size(1), rate.options()).unsqueeze(-1) * rate * op.sense;
  const at::Tensor c = angle.cos().unsqueeze(1).to(x.scalar_type()), s = angle.sin().unsqueeze(1).to(x.scalar_type());
  const at::Tensor x1 = x.narrow(-1, 0, half), x2 = x.narrow(-1, half, half);
  return {at::cat({x1 * c + x2 * s, x2 * c - x1 * s}, -1)};
}

}  // namespace sb::aten
