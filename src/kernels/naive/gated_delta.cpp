#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::naive {

// q, k, v, beta, g?, state?
kernels::Tensors gated_delta(const op::GatedDelta& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &q = in[0], &k = in[1], &v = in[2], &beta = in[3], &g = in[4];
  at::Tensor S = in[5].defined() ? in[5] : at::zeros({q.size(0), q.size(2), q.size(3), v.size(4)}, v.options());
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < q.size(1); ++t) {
    if (g.defined()) S = S * g.select(1, t).exp().unsqueeze(-1).unsqueeze(-1);
    for (int64_t j = 0; j < k.size(2); ++j) {
      const at::Tensor kj = k.select(1, t).select(1, j), vj = v.select(1, t).select(1, j);
      const at::Tensor strength = beta.select(1, t).select(1, j).unsqueeze(-1);
      const at::Tensor read = at::matmul(kj.unsqueeze(-2), S).squeeze(-2);
      S = S + kj.unsqueeze(-1) * (strength * (vj - read)).unsqueeze(-2);
    }
    out.push_back(op.scale * at::matmul(q.select(1, t).unsqueeze(-2), S).squeeze(-2));
  }
  return {out.empty() ? at::zeros({q.size(0), 0, q.size(2), v.size(4)}, v.options()) : at::stack(out, 1), S};
}

}  // namespace sb::naive
