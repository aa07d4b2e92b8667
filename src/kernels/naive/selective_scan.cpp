#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::naive {

// x, delta, A_log, B, C, skip, state?, write?
kernels::Tensors selective_scan(const op::SelectiveScan& op, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &x = in[0], &delta = in[1], &A_log = in[2], &B = in[3], &C = in[4], &skip = in[5];
  const at::Tensor A = -A_log.exp();
  const at::Tensor written = (in[7].defined() ? in[7] : delta) * x;
  at::Tensor h = in[6].defined() ? in[6] : at::zeros({x.size(0), x.size(2), A_log.size(1)}, x.options());
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < x.size(1); ++t) {
    at::Tensor decay = (delta.select(1, t).unsqueeze(-1) * A).exp();
    if (op.a_min > 0) decay = decay.clamp_min(op.a_min);
    h = decay * h + written.select(1, t).unsqueeze(-1) * B.select(1, t).unsqueeze(1);
    out.push_back(at::matmul(h, C.select(1, t).unsqueeze(-1)).squeeze(-1));
  }
  return {at::stack(out, 1) + skip * x, h};
}

}  // namespace sb::naive
