#include <ATen/ATen.h>

#include "kernels/fused.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"

namespace sb::aten {

using at::Tensor;

// q, k, v, g, here, before, skip?, state?, last k?, last v?
// The state that frame t decays, S' = e^g (S_{t-1} + before k_{t-1} v_{t-1}^T), is a decayed attention over the frames
// before; the frame itself is added with its own weight. So no operand of an output depends on a later frame.
kernels::Tensors trapezoid_attention(const op::TrapezoidAttention& op, const kernels::Tensors& in, kernels::Tensors*) {
  const Tensor &q = in[0], &k = in[1], &v = in[2], &g = in[3], &here = in[4], &before = in[5], &skip = in[6],
               &state = in[7];
  const int64_t T = q.size(1);
  if (T == 0) return {at::zeros_like(v), state};
  const auto shifted = [&](const Tensor& x, const Tensor& last) {
    const Tensor first = last.defined() ? last.unsqueeze(1).to(x.scalar_type()) : at::zeros_like(x.narrow(1, 0, 1));
    return at::cat({first, x.narrow(1, 0, T - 1)}, 1);
  };
  // The state holds the last frame with its weight `here`.
  const Tensor weight = g.exp() * (shifted(here, Tensor()) + before);
  const OutAndState read =
      sb::decayed_attention(q, shifted(k, in[8]), sb::scale_heads(shifted(v, in[9]), weight), g, op.scale, state);
  const Tensor written = (here.select(1, T - 1).unsqueeze(-1) * k.select(1, T - 1)).unsqueeze(-1);
  return {sb::own_write(read.out, q, k, v, here, skip, op.scale),
          read.state + written * v.select(1, T - 1).unsqueeze(-2)};
}

}  // namespace sb::aten
