#include "train/loader.h"

#include <ATen/ATen.h>

#include <chrono>
#include <vector>

namespace sb {
namespace {

constexpr size_t kAhead = 3;

void fill_state_targets(const Batch& frames, int64_t* out) {
  for (size_t i = 0; i < frames.target.size(); ++i) out[i] = frames.target[i];
}

// Every frame of element e asks for the class of element e + 1; nothing follows the last one.
void fill_next_class(const Batch& frames, int64_t* out) {
  for (int b = 0; b < frames.batch; ++b) {
    const int32_t* start = frames.start.data() + static_cast<size_t>(b) * (frames.elements + 1);
    const size_t row = static_cast<size_t>(b) * frames.frames;
    for (int t = 0; t < frames.frames; ++t) {
      const int32_t e = frames.element[row + t];
      out[row + t] = e < 0 || e + 1 >= frames.elements ? -1 : frames.symbol[row + start[e + 1]];
    }
  }
}

}  // namespace

int64_t output_classes(const Automaton& automaton, Objective objective) {
  return objective == Objective::state ? automaton.states() : automaton.vocab;
}

TensorBatch to_tensors(Batch frames, const BatchMaker& maker, at::ScalarType type) {
  const int vocab = maker.sampler().automaton().vocab;
  at::Tensor input = at::empty({frames.batch, frames.frames, vocab}, at::kFloat);
  expand_frames(frames, vocab, maker.task().noise, maker.sampler().config().seed, input.data_ptr<float>());
  at::Tensor target = at::empty({int64_t{frames.batch} * frames.frames}, at::kLong);
  if (maker.task().objective == Objective::state) {
    fill_state_targets(frames, target.data_ptr<int64_t>());
  } else {
    fill_next_class(frames, target.data_ptr<int64_t>());
  }
  const auto first = static_cast<int64_t>(frames.first);
  at::Tensor samples = at::arange(first, first + frames.batch, at::kLong);
  return {std::move(frames), input.to(type), std::move(target), std::move(samples)};
}

Loader::Loader(std::shared_ptr<const BatchMaker> maker, Split split, int batch, int64_t first, int64_t last,
               at::ScalarType type)
    : maker_(std::move(maker)), split_(split), batch_(batch), next_(first), last_(last), type_(type) {
  worker_ = std::thread([this] { work(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void Loader::work() {
  try {
    for (int64_t update = next_; update < last_; ++update) {
      Batch frames;
      maker_->make(split_, static_cast<uint64_t>(update) * batch_, batch_, frames);
      TensorBatch made = to_tensors(std::move(frames), *maker_, type_);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || ready_.size() < kAhead; });
      if (stop_) return;
      ready_.push_back(std::move(made));
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

TensorBatch Loader::next() {
  const auto from = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failure_ || !ready_.empty(); });
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  if (ready_.empty()) std::rethrow_exception(failure_);
  TensorBatch out = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return out;
}

}  // namespace sb
