// One step runs the loop over time for a single frame.
#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::aten {
namespace {

using at::Tensor;
using kernels::Tensors;

// Every input but the last (the state) as a sequence of one frame.
template <class Step, class Whole>
Tensors step(const Step& whole_op, const Tensors& in, Whole* whole) {
  Tensors frames = in;
  Tensor state = in.back();
  for (size_t i = 0; i + 1 < in.size(); ++i)
    if (in[i].defined()) frames[i] = in[i].to(state.scalar_type()).unsqueeze(1);
  const Tensors result = whole(whole_op, frames, nullptr);
  state.copy_(result[1]);
  return {result[0].select(1, 0).to(in[0].scalar_type())};
}

}  // namespace

Tensors decayed_attention_step(const op::DecayedAttentionStep& op, const Tensors& in, Tensors*) {
  const op::DecayedAttention whole{op.scale};
  if (!in[3].defined() || in[3].dim() > 1) return step(whole, in, naive::decayed_attention);
  // A fixed decay [H] has no frames.
  return step(whole, {in[0], in[1], in[2], in[3].unsqueeze(0).expand({in[0].size(0), in[3].size(0)}), in[4]},
              naive::decayed_attention);
}

Tensors gated_delta_step(const op::GatedDeltaStep& op, const Tensors& in, Tensors*) {
  return step(op::GatedDelta{op.scale}, in, naive::gated_delta);
}

Tensors general_delta_step(const op::GeneralDeltaStep& op, const Tensors& in, Tensors*) {
  return step(op::GeneralDelta{op.scale, op.erase_first}, in, naive::general_delta);
}

}  // namespace sb::aten
