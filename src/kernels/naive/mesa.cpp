#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::naive {

// q, k, v, beta, g, ridge, state?
kernels::Tensors mesa(const op::Mesa&, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &q = in[0], &k = in[1], &v = in[2], &beta = in[3], &g = in[4];
  const int64_t K = q.size(3), V = v.size(3);
  const at::Tensor ridge = at::diag_embed(in[5]), kv = at::cat({k, v}, -1);
  at::Tensor S = in[6].defined() ? in[6] : at::zeros({q.size(0), q.size(2), K, K + V}, v.options());
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < q.size(1); ++t) {
    const at::Tensor key = (beta.select(1, t).unsqueeze(-1) * k.select(1, t)).unsqueeze(-1);
    S = g.select(1, t).exp().unsqueeze(-1).unsqueeze(-1) * S + key * kv.select(1, t).unsqueeze(-2);
    const at::Tensor x = at::linalg_solve(S.narrow(-1, 0, K) + ridge, q.select(1, t).unsqueeze(-1));
    out.push_back(at::matmul(x.transpose(-1, -2), S.narrow(-1, K, V)).squeeze(-2));
  }
  return {out.empty() ? at::zeros_like(v) : at::stack(out, 1), S};
}

}  // namespace sb::naive
