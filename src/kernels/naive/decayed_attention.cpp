#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::naive {

// q, k, v, g?, state?
kernels::Tensors decayed_attention(const op::DecayedAttention& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &q = in[0], &k = in[1], &v = in[2], &g = in[3];
  const int64_t H = v.size(2), per_group = H / q.size(2);
  const at::Tensor queries = q.repeat_interleave(per_group, 2), keys = k.repeat_interleave(per_group, 2);
  at::Tensor S = in[4].defined() ? in[4] : at::zeros({v.size(0), H, q.size(3), v.size(3)}, v.options());
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < v.size(1); ++t) {
    if (g.defined()) {
      const at::Tensor a = (g.dim() == 1 ? g : g.select(1, t)).exp();
      S = S * (g.dim() == 1 ? a.view({1, H, 1, 1}) : g.dim() == 3 ? a.unsqueeze(-1).unsqueeze(-1) : a.unsqueeze(-1));
    }
    S = S + keys.select(1, t).unsqueeze(-1) * v.select(1, t).unsqueeze(-2);
    out.push_back(op.scale * at::matmul(queries.select(1, t).unsqueeze(-2), S).squeeze(-2));
  }
  return {out.empty() ? at::zeros_like(v) : at::stack(out, 1), S};
}

}  // namespace sb::naive
