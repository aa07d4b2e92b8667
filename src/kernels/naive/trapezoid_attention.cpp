#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::naive {

// q, k, v, g, here, before, skip?, state?, last k?, last v?
kernels::Tensors trapezoid_attention(const op::TrapezoidAttention& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &q = in[0], &k = in[1], &v = in[2], &g = in[3], &here = in[4], &before = in[5];
  const auto factor = [](const at::Tensor& x, int64_t t) { return x.select(1, t).unsqueeze(-1).unsqueeze(-1); };
  const auto outer = [](const at::Tensor& x, const at::Tensor& y) { return x.unsqueeze(-1) * y.unsqueeze(-2); };
  at::Tensor S = in[7].defined() ? in[7] : at::zeros({q.size(0), q.size(2), q.size(3), v.size(3)}, v.options());
  at::Tensor last = in[8].defined() ? outer(in[8], in[9]) : at::zeros_like(S);
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < q.size(1); ++t) {
    const at::Tensor now = outer(k.select(1, t), v.select(1, t));
    S = factor(g, t).exp() * (S + factor(before, t) * last) + factor(here, t) * now;
    last = now;
    out.push_back(op.scale * at::matmul(q.select(1, t).unsqueeze(-2), S).squeeze(-2));
  }
  if (out.empty()) return {at::zeros_like(v), S};
  const at::Tensor read = at::stack(out, 1);
  return {in[6].defined() ? read + in[6].unsqueeze(-1) * v : read, S};
}

}  // namespace sb::naive
