#include "train/network_predictor.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>

#include "kernels/frame_rows.h"
#include "train/gpu.h"
#include "train/loader.h"
#include "train/reduce.h"

namespace sb {
namespace {

constexpr int kStretch = 1024;                        // frames that keep a GPU busy
constexpr int64_t kReducedBudget = int64_t{1} << 25;  // maximum probabilities that are reduced at a time

}  // namespace

NetworkPredictor::NetworkPredictor(const Network& network, std::optional<bool> reduces)
    : network_(network), reduces_(reduces.value_or(!network.parameters().flat().device().is_cpu())) {}

void NetworkPredictor::begin(const Batch&) {
  state_ = NetworkState();
  hidden_ = at::Tensor();
}

void NetworkPredictor::predict(const Batch& batch, int from, int to, float* probabilities) {
  const at::NoGradGuard no_grad;
  Pass pass;
  // If the range is the whole sequence, no state needs to be carried.
  const bool whole = from == 0 && to == batch.frames;
  pass.state = whole ? nullptr : &state_;
  const at::Tensor flat = network_.parameters().flat();
  if (!flat.device().is_cpu()) return predict_there(batch, from, to, probabilities);
  const at::Tensor logits = network_.logits(dense_frames(batch, from, to, flat.scalar_type()), pass);
  at::Tensor out = at::from_blob(probabilities, {logits.size(0), logits.size(1), logits.size(2)}, at::kFloat);
  if (!batch.value.empty()) {
    out.copy_(logits);
  } else if (logits.scalar_type() == at::kFloat) {
    at::softmax_out(out, logits, -1);
  } else {
    out.copy_(at::softmax(logits, -1));
  }
}

// On a GPU, layers compute longer ranges in advance than the host requests probabilities for.
void NetworkPredictor::predict_there(const Batch& batch, int from, int to, float* probabilities) {
  const at::Tensor flat = network_.parameters().flat();
  const std::vector<int64_t> sizes{batch.batch, to - from, network_.config().outputs};
  // Copies via pinned memory, which is several times as fast as directly into the caller's memory.
  const at::Tensor pinned = at::empty(sizes, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
  for (int done = from; done < to;) {
    if (!hidden_.defined() || done >= hidden_from_ + static_cast<int>(hidden_.size(1))) {
      const int until = std::min(batch.frames, std::max(to, done + kStretch));
      Pass pass;
      pass.state = done == 0 && until == batch.frames ? nullptr : &state_;
      const at::Tensor frames = dense_frames(batch, done, until, flat.scalar_type(), true);
      hidden_ = network_.hidden(frames.to(flat.device(), true), pass);
      hidden_from_ = done;
    }
    const int end = std::min(to, hidden_from_ + static_cast<int>(hidden_.size(1)));
    const at::Tensor logits = network_.decode(hidden_.narrow(1, done - hidden_from_, end - done));
    const at::ScalarType type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    pinned.narrow(1, done - from, end - done).copy_(batch.value.empty() ? at::softmax(logits, -1, type) : logits);
    done = end;
  }
  at::from_blob(probabilities, sizes, at::kFloat).copy_(pinned);
}

// Frames [batch, frames, channels] of the parameters' type, on their device. One-hot frames are made on a GPU, so that
// only symbols are copied there.
at::Tensor NetworkPredictor::frames_there(const Batch& batch) const {
  const at::Tensor flat = network_.parameters().flat();
  if (flat.device().is_cpu() || !batch.dense.empty())
    return dense_frames(batch, 0, batch.frames, flat.scalar_type(), !flat.device().is_cpu()).to(flat.device(), true);
  const auto pinned = [](at::ScalarType type) { return at::TensorOptions().dtype(type).pinned_memory(true); };
  const at::Tensor symbol = at::empty({batch.batch, batch.frames}, pinned(at::kShort));
  std::copy(batch.symbol.begin(), batch.symbol.end(), symbol.data_ptr<int16_t>());
  const at::Tensor samples = at::empty({batch.batch}, pinned(at::kLong));
  std::copy(batch.samples.begin(), batch.samples.end(), samples.data_ptr<int64_t>());
  const kernels::FrameNoise noise{static_cast<float>(batch.noise), batch.seed, static_cast<uint32_t>(batch.split),
                                  samples.to(flat.device(), true)};
  return kernels::frame_rows(symbol.to(flat.device(), true), batch.channels, at::kFloat, noise).to(flat.scalar_type());
}

std::unique_ptr<Reduction> NetworkPredictor::reduce(const Batch& batch, const Task& task) {
  if (!reduces_ || !batch.value.empty()) return nullptr;
  const at::NoGradGuard no_grad;
  const at::Device device = network_.parameters().flat().device();
  const at::Tensor frames = frames_there(batch);
  const auto fitting = static_cast<int>(std::max<int64_t>(1, kReducedBudget / (int64_t{batch.batch} * answers())));
  auto out = std::make_unique<TensorReduction>(batch, task, device);
  NetworkState state;
  for (int from = 0, until = 0; from < batch.frames; from = until) {
    until = std::min(batch.frames, from + kStretch);
    Pass pass;
    pass.state = from == 0 && until == batch.frames ? nullptr : &state;
    const at::Tensor hidden = network_.hidden(frames.narrow(1, from, until - from).contiguous(), pass);
    for (int at = from, to = 0; at < until; at = to) {
      to = std::min(until, at + fitting);
      out->take(at, to, network_.decode(hidden.narrow(1, at - from, to - at)));
    }
  }
  if (!device.is_cpu()) out->finish(gpu_marker());
  return out;
}

}  // namespace sb
