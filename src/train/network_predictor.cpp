#include "train/network_predictor.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/grad_mode.h>

namespace sb {

void NetworkPredictor::begin(const TensorBatch&) {
  state_ = NetworkState();
}

void NetworkPredictor::predict(const TensorBatch& batch, int from, int to, float* probabilities) {
  const at::NoGradGuard no_grad;
  Pass pass;
  // A stretch that is the whole sequence needs no state; nothing is carried into another.
  const bool whole = from == 0 && to == batch.frames.frames;
  pass.state = whole ? nullptr : &state_;
  pass.gates = gates_;
  const at::Tensor logits = network_.logits(batch.input.narrow(1, from, to - from), pass);
  at::Tensor out = at::from_blob(probabilities, {logits.size(0), logits.size(1), logits.size(2)}, at::kFloat);
  if (logits.scalar_type() == at::kFloat) {
    at::softmax_out(out, logits, -1);
  } else {
    out.copy_(at::softmax(logits, -1));
  }
}

}  // namespace sb
