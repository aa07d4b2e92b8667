#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::aten {

// h, weight, bias, target, normaliser, copy? (its values are the weight's, rounded to h's type). No value is read on
// the host: padding is masked, not left out.
kernels::Tensors decoder_cross_entropy(const op::DecoderCrossEntropy&, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor &target = in[3], real = target.ge(0);
  const auto type = at::result_type(in[0], in[1]);
  const at::Tensor weight = in[1].to(in[0].scalar_type()).to(type);
  const at::Tensor logits = at::addmm(in[2].to(type), in[0].to(type), weight.t());
  const at::Tensor picked = at::log_softmax(logits, -1).gather(1, target.clamp_min(0).unsqueeze(-1)).squeeze(-1);
  return {-picked.masked_fill(real.logical_not(), 0).sum() / in[4].to(logits.scalar_type()).squeeze(0)};
}

}  // namespace sb::aten
