#include <ATen/ATen.h>

#include "kernels/elementwise.h"
#include "kernels/operations.h"

namespace sb::aten {

// x, weight, bias?, tail?
kernels::Tensors conv4(const op::Conv4& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &x = in[0], &bias = in[2], &tail = in[3];
  const int64_t time = x.size(1);
  const at::Tensor before = tail.defined() ? tail : at::zeros({x.size(0), 3, x.size(2)}, x.options());
  const at::Tensor row = at::cat({before, x}, 1), w = in[1].reshape({-1, 4});
  at::Tensor y = row.narrow(1, 3, time) * w.select(1, 3);
  for (int64_t i = 0; i < 3; ++i) y = y + row.narrow(1, i, time) * w.select(1, i);
  if (bias.defined()) y = y + bias;
  return {(op.silu ? sb::silu(y) : y).to(x.scalar_type())};
}

}  // namespace sb::aten
