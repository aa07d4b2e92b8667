#include "train/network_predictor.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/grad_mode.h>

#include "train/loader.h"

namespace sb {

void NetworkPredictor::begin(const Batch&) {
  state_ = NetworkState();
}

void NetworkPredictor::predict(const Batch& batch, int from, int to, float* probabilities) {
  const at::NoGradGuard no_grad;
  Pass pass;
  // A stretch that is the whole sequence needs no state; nothing is carried into another.
  const bool whole = from == 0 && to == batch.frames;
  pass.state = whole ? nullptr : &state_;
  pass.gates = gates_;
  const at::Tensor flat = network_.parameters().flat();
  const bool here = flat.device().is_cpu();
  const at::Tensor frames = dense_frames(batch, from, to, flat.scalar_type(), !here);
  const at::Tensor logits = network_.logits(frames.to(flat.device(), true), pass);
  at::Tensor out = at::from_blob(probabilities, {logits.size(0), logits.size(1), logits.size(2)}, at::kFloat);
  if (here && logits.scalar_type() == at::kFloat) {
    at::softmax_out(out, logits, -1);
  } else {
    const at::Tensor made = at::softmax(logits, -1, logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    // From a GPU through pinned memory: several times as fast as into the caller's.
    out.copy_(here ? made : at::empty(out.sizes(), out.options().pinned_memory(true)).copy_(made));
  }
}

}  // namespace sb
