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

constexpr size_t kMostShapes = 4;                     // that are recorded
constexpr int kStretch = 1024;                        // frames that keep a GPU busy
constexpr int64_t kReducedBudget = int64_t{1} << 26;  // floats of probabilities that are reduced at a time

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
  // A stretch that is the whole sequence needs no state; nothing is carried into another.
  const bool whole = from == 0 && to == batch.frames;
  pass.state = whole ? nullptr : &state_;
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
    pinned.narrow(1, done - from, end - done).copy_(at::softmax(logits, -1, type));
    done = end;
  }
  at::from_blob(probabilities, sizes, at::kFloat).copy_(pinned);
}

// Symbols and numbers of the samples, in memory that a GPU copies from while others work.
std::pair<at::Tensor, at::Tensor> NetworkPredictor::pinned_symbols(const Batch& batch) {
  const auto pinned = [](at::ScalarType type) { return at::TensorOptions().dtype(type).pinned_memory(true); };
  const at::Tensor symbol = at::empty({batch.batch, batch.frames}, pinned(at::kShort));
  std::copy(batch.symbol.begin(), batch.symbol.end(), symbol.data_ptr<int16_t>());
  const at::Tensor samples = at::empty({batch.batch}, pinned(at::kLong));
  std::copy(batch.samples.begin(), batch.samples.end(), samples.data_ptr<int64_t>());
  return {symbol, samples};
}

at::Tensor NetworkPredictor::dense_there(const Batch& batch, const at::Tensor& symbol,
                                         const at::Tensor& samples) const {
  const kernels::FrameNoise noise{static_cast<float>(batch.noise), batch.seed, static_cast<uint32_t>(batch.split),
                                  samples};
  return kernels::frame_rows(symbol, batch.channels, at::kFloat, noise).to(network_.parameters().flat().scalar_type());
}

// Dense frames [batch, frames, channels] of the parameters' type; to a GPU travel symbols.
at::Tensor NetworkPredictor::frames_there(const Batch& batch) const {
  const at::Tensor flat = network_.parameters().flat();
  if (flat.device().is_cpu()) return dense_frames(batch, 0, batch.frames, flat.scalar_type());
  const auto [symbol, samples] = pinned_symbols(batch);
  return dense_there(batch, symbol.to(flat.device(), true), samples.to(flat.device(), true));
}

// A short pass costs the host more than the GPU. The first shapes are recorded, whether they come again or not: so
// which batches are depends on the samples alone, not on how often a run was interrupted.
at::Tensor NetworkPredictor::recorded_logits(const Batch& batch) {
  const at::Device device = network_.parameters().flat().device();
  const int64_t values = int64_t{batch.batch} * batch.frames * answers();
  if (device.is_cpu() || batch.frames > kStretch || values > kReducedBudget) return {};
  const Shape shape{batch.batch, batch.frames, batch.split, batch.noise, batch.seed};
  if (!recorded_.contains(shape) && recorded_.size() >= kMostShapes) return {};
  Recorded& recorded = recorded_[shape];
  const auto [symbol, samples] = pinned_symbols(batch);
  if (!recorded.symbol.defined()) {
    recorded.symbol = symbol.to(device, true);
    recorded.samples = samples.to(device, true);
  } else {
    recorded.symbol.copy_(symbol, true);
    recorded.samples.copy_(samples, true);
  }
  if (!recorded.replay) {
    recorded.replay =
        gpu_recorded([&] { recorded.logits = network_.logits(dense_there(batch, recorded.symbol, recorded.samples)); });
  }
  recorded.replay();
  return recorded.logits;
}

std::unique_ptr<Reduction> NetworkPredictor::reduce(const Batch& batch, const Task& task) {
  if (!reduces_) return nullptr;
  const at::NoGradGuard no_grad;
  const at::Device device = network_.parameters().flat().device();
  auto out = std::make_unique<TensorReduction>(batch, task, device);
  if (const at::Tensor logits = recorded_logits(batch); logits.defined()) {
    out->take(0, batch.frames, logits);
    out->finish(gpu_marker());
    return out;
  }
  const at::Tensor frames = frames_there(batch);
  const auto fitting = static_cast<int>(std::max<int64_t>(1, kReducedBudget / (int64_t{batch.batch} * answers())));
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
