#include "train/network_predictor.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>

#include "train/loader.h"

namespace sb {
namespace {

constexpr int kStretch = 1024;  // frames that keep a GPU busy

}  // namespace

void NetworkPredictor::begin(const Batch&) {
  state_ = NetworkState();
  hidden_ = at::Tensor();
}

void NetworkPredictor::predict(const Batch& batch, int from, int to, float* probabilities) {
  const at::NoGradGuard no_grad;
  Pass pass;
  // A stretch that is the whole sequence needs no state; nothing is carried into another.
  const bool whole = from == 0 && to == batch.frames;
  pass.state = whole ? nullptr : &state_;
  pass.gates = gates_;
  const at::Tensor flat = network_.parameters().flat();
  if (!flat.device().is_cpu()) return predict_there(batch, from, to, probabilities);
  const at::Tensor logits = network_.logits(dense_frames(batch, from, to, flat.scalar_type()), pass);
  at::Tensor out = at::from_blob(probabilities, {logits.size(0), logits.size(1), logits.size(2)}, at::kFloat);
  if (logits.scalar_type() == at::kFloat) {
    at::softmax_out(out, logits, -1);
  } else {
    out.copy_(at::softmax(logits, -1));
  }
}

// On a GPU layers run ahead over longer stretches than the host can take probabilities of.
void NetworkPredictor::predict_there(const Batch& batch, int from, int to, float* probabilities) {
  const at::Tensor flat = network_.parameters().flat();
  const std::vector<int64_t> sizes{batch.batch, to - from, network_.config().outputs};
  // Through pinned memory, several times as fast as into the caller's.
  const at::Tensor pinned = at::empty(sizes, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
  for (int done = from; done < to;) {
    if (!hidden_.defined() || done >= hidden_from_ + static_cast<int>(hidden_.size(1))) {
      const int until = gates_ ? to : std::min(batch.frames, std::max(to, done + kStretch));
      Pass pass;
      pass.state = done == 0 && until == batch.frames ? nullptr : &state_;
      pass.gates = gates_;
      const at::Tensor frames = dense_frames(batch, done, until, flat.scalar_type(), true);
      hidden_ = network_.hidden(frames.to(flat.device(), true), pass);
      hidden_from_ = done;
    }
    const int end = std::min(to, hidden_from_ + static_cast<int>(hidden_.size(1)));
    const at::Tensor logits = network_.decode(hidden_.narrow(1, done - hidden_from_, end - done));
    const at::ScalarType type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    pinned.narrow(1, done - from, end - done).copy_(at::softmax(logits, -1, type));
    done = end;
  }
  at::from_blob(probabilities, sizes, at::kFloat).copy_(pinned);
}

}  // namespace sb
