#include <ATen/ATen.h>

#include <cmath>

#include "kernels/operations.h"

namespace sb::aten {

kernels::Tensors causal_attention(const op::CausalAttention& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor q = in[0].transpose(1, 2), k = in[1].transpose(1, 2), v = in[2].transpose(1, 2);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  const at::Tensor later = at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).triu(op.offset + 1);
  const at::Tensor score = at::matmul(q, k.transpose(-1, -2)) * scale;
  const at::Tensor weight = at::softmax(score.masked_fill(later, -INFINITY), -1);
  return {at::matmul(weight, v).transpose(1, 2)};
}

}  // namespace sb::aten
