#include "train/loader.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace sb {
namespace {

constexpr size_t kAhead = 3;
constexpr int64_t kRowGrain = 1 << 15;  // dense values a thread makes at a time

}  // namespace

at::Tensor dense_frames(const Batch& batch, int from, int to, at::ScalarType type) {
  at::Tensor out = at::empty({batch.batch, to - from, batch.channels}, at::kFloat);
  float* rows = out.data_ptr<float>();
  const int64_t row = int64_t{to - from} * batch.channels;
  at::parallel_for(0, batch.batch, std::max<int64_t>(1, kRowGrain / std::max<int64_t>(1, row)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t b = begin; b < end; ++b) {
                       expand_row(batch, static_cast<int>(b), from, to, rows + b * row);
                     }
                   });
  return out.to(type);
}

TensorBatch to_tensors(Batch frames, const Task& task, at::ScalarType type) {
  at::Tensor input = dense_frames(frames, 0, frames.frames, type);
  at::Tensor target = at::empty({int64_t{frames.batch} * frames.frames}, at::kLong);
  task.targets(frames, target.data_ptr<int64_t>());
  at::Tensor samples = at::empty({frames.batch}, at::kLong);
  std::copy(frames.samples.begin(), frames.samples.end(), samples.data_ptr<int64_t>());
  return {std::move(frames), std::move(input), std::move(target), std::move(samples)};
}

Loader::Loader(std::shared_ptr<const Task> task, Split split, int batch, int64_t first, int64_t last)
    : task_(std::move(task)), split_(split), batch_(batch), next_(first), last_(last) {
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
      Batch made;
      task_->fill(split_, static_cast<uint64_t>(update) * batch_, batch_, made);
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

Batch Loader::next() {
  const auto from = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failure_ || !ready_.empty(); });
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  if (ready_.empty()) std::rethrow_exception(failure_);
  Batch out = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return out;
}

}  // namespace sb
