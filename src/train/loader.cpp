#include "train/loader.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace sb {
namespace {

constexpr size_t kAhead = 3;
constexpr int64_t kRowGrain = 1 << 15;  // dense values a thread makes at a time

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
  at::Tensor input = at::empty({frames.batch, frames.frames, frames.vocab}, at::kFloat);
  float* rows = input.data_ptr<float>();
  const int64_t row = int64_t{frames.frames} * frames.vocab;
  at::parallel_for(0, frames.batch, std::max<int64_t>(1, kRowGrain / std::max<int64_t>(1, row)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t b = begin; b < end; ++b) {
                       expand_row(frames, static_cast<int>(b), 0, frames.frames, rows + b * row);
                     }
                   });
  at::Tensor target = at::empty({int64_t{frames.batch} * frames.frames}, at::kLong);
  if (maker.task().objective == Objective::state) {
    fill_state_targets(frames, target.data_ptr<int64_t>());
  } else {
    fill_next_class(frames, target.data_ptr<int64_t>());
  }
  at::Tensor samples = at::empty({frames.batch}, at::kLong);
  std::copy(frames.samples.begin(), frames.samples.end(), samples.data_ptr<int64_t>());
  const int64_t* wanted = target.data_ptr<int64_t>();
  const auto real = std::count_if(wanted, wanted + target.numel(), [](int64_t t) { return t >= 0; });
  return {std::move(frames), input.to(type), std::move(target), std::move(samples), real};
}

std::vector<uint64_t> samples_of_update(const SampleOrder& order, int batch, int64_t update) {
  std::vector<uint64_t> out(static_cast<size_t>(batch));
  const uint64_t first = static_cast<uint64_t>(update) * static_cast<uint64_t>(batch);
  for (size_t i = 0; i < out.size(); ++i) out[i] = order.at(first + i);
  return out;
}

Loader::Loader(std::shared_ptr<const BatchMaker> maker, Split split, int batch, int64_t first, int64_t last,
               const SampleOrder& order, int pad_to)
    : maker_(std::move(maker)),
      split_(split),
      batch_(batch),
      first_(first),
      last_(last),
      order_(order),
      pad_to_(pad_to) {
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
    for (int64_t update = first_; update < last_; ++update) {
      Batch made;
      maker_->make(split_, samples_of_update(order_, batch_, update), made, pad_to_);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || ready_.size() < kAhead; });
      if (stop_) return;
      ready_.push_back(std::move(made));
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

Batch Loader::next() {
  const auto from = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failure_ || ended_ || !ready_.empty(); });
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  if (ready_.empty() && failure_) std::rethrow_exception(failure_);
  if (ready_.empty()) throw check_failed("loader", "asked for a batch after the last one");
  Batch out = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return out;
}

}  // namespace sb
