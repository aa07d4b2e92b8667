#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::naive {

// q, k, v, erase, write, g?, state?
kernels::Tensors general_delta(const op::GeneralDelta& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &q = in[0], &k = in[1], &v = in[2], &erase = in[3], &write = in[4], &g = in[5];
  at::Tensor S = in[6].defined() ? in[6] : at::zeros({q.size(0), q.size(2), q.size(3), v.size(3)}, v.options());
  const auto read_by = [](const at::Tensor& x, const at::Tensor& state) {
    return at::matmul(x.unsqueeze(-2), state).squeeze(-2);
  };
  const auto outer = [](const at::Tensor& x, const at::Tensor& y) { return x.unsqueeze(-1) * y.unsqueeze(-2); };
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < q.size(1); ++t) {
    at::Tensor decayed = S;
    if (g.defined()) {
      const at::Tensor a = g.select(1, t).exp();
      decayed = S * (g.dim() == 3 ? a.unsqueeze(-1).unsqueeze(-1) : a.unsqueeze(-1));
    }
    const at::Tensor erased = read_by(erase.select(1, t), op.erase_first ? S : decayed);
    S = decayed - outer(write.select(1, t), erased) + outer(k.select(1, t), v.select(1, t));
    out.push_back(op.scale * read_by(q.select(1, t), S));
  }
  return {out.empty() ? at::zeros_like(v) : at::stack(out, 1), S};
}

}  // namespace sb::naive
