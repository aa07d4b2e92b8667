#include <ATen/ATen.h>

#include <cmath>

#include "kernels/operations.h"

namespace sb::naive {

// q, k, v, g
kernels::Tensors forgetting_attention(const op::ForgettingAttention& op, const kernels::Tensors& in,
                                      kernels::Tensors*) {
  const at::Tensor &q = in[0], &k = in[1], &v = in[2], &g = in[3];
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < q.size(1); ++t) {
    std::vector<at::Tensor> scores;  // from the last frame to the first
    at::Tensor decay = at::zeros_like(g.select(1, 0));
    for (int64_t s = op.offset + t; s >= 0; --s) {
      scores.push_back((q.select(1, t) * k.select(1, s)).sum(-1) * scale + decay);
      decay = decay + g.select(1, s);
    }
    const at::Tensor weight = at::softmax(at::stack(scores, 1), 1).flip(1);
    out.push_back((weight.unsqueeze(-1) * v.narrow(1, 0, op.offset + t + 1)).sum(1));
  }
  return {out.empty() ? at::zeros_like(q) : at::stack(out, 1)};
}

}  // namespace sb::naive
