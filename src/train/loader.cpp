#include "train/loader.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "random/philox.h"

namespace sb {
namespace {

constexpr int64_t kRowGrain = 1 << 15;  // minimum dense values per thread

at::TensorOptions options(at::ScalarType type, bool pinned) {
  return at::TensorOptions().dtype(type).pinned_memory(pinned);
}

}  // namespace

at::Tensor dense_frames(const Batch& batch, int from, int to, at::ScalarType type, bool pinned) {
  at::Tensor out = at::empty({batch.batch, to - from, batch.channels}, options(at::kFloat, pinned));
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

TensorBatch to_tensors(Batch frames, const Task& task, at::ScalarType type, bool for_gpu) {
  at::Tensor input, symbol;
  if (for_gpu && frames.dense.empty()) {
    symbol = at::empty({frames.batch, frames.frames}, options(at::kShort, true));
    std::copy(frames.symbol.begin(), frames.symbol.end(), symbol.data_ptr<int16_t>());
  } else {
    input = dense_frames(frames, 0, frames.frames, type, for_gpu);
  }
  at::Tensor target = at::empty({int64_t{frames.batch} * frames.frames}, options(at::kLong, for_gpu));
  int64_t* wanted = target.data_ptr<int64_t>();
  task.targets(frames, wanted);
  // Targets are checked here, because reading them on a device would wait for all earlier work.
  const auto real = std::count_if(wanted, wanted + target.numel(), [](int64_t t) { return t >= 0; });
  const int64_t answers = task.shape().answers, most = *std::max_element(wanted, wanted + target.numel());
  if (most >= answers) {
    throw check_failed("loader",
                       "targets, expected less than " + std::to_string(answers) + ", got " + std::to_string(most));
  }
  at::Tensor value;
  if (!frames.value.empty()) {
    value = at::empty({frames.batch, frames.frames, answers}, options(at::kFloat, for_gpu));
    std::copy(frames.value.begin(), frames.value.end(), value.data_ptr<float>());
    value = value.to(type);
  }
  at::Tensor samples = at::empty({frames.batch}, options(at::kLong, for_gpu));
  std::copy(frames.samples.begin(), frames.samples.end(), samples.data_ptr<int64_t>());
  const NoiseOfFrames noise{frames.channels, frames.noise, frames.seed, frames.split};
  return {std::move(frames), std::move(input), std::move(symbol), noise, std::move(target), std::move(samples), real,
          std::move(value)};
}

at::Tensor random_positions(const Batch& batch, int stretch, uint64_t seed, bool pinned) {
  at::Tensor out = at::zeros({batch.batch, batch.frames}, options(at::kInt, pinned));
  for (int b = 0; b < batch.batch; ++b) {
    const PhiloxStream stream(seed, static_cast<uint32_t>(batch.split), batch.samples[static_cast<size_t>(b)],
                              Purpose::position);
    const auto frames = static_cast<uint64_t>(batch.real_frames(b));
    const uint64_t sizes = frames * static_cast<uint64_t>(stretch - 1) + 1;
    std::array<uint32_t, 4> words = stream.block(0);
    const uint64_t range = frames + (words[0] * sizes >> 32);
    // Takes each position with the probability that it is one of those still to be taken.
    int32_t* row = out.data_ptr<int32_t>() + int64_t{b} * batch.frames;
    for (uint64_t position = 0, taken = 0; taken < frames; ++position) {
      if (position % 4 == 0) words = stream.block(static_cast<uint32_t>(1 + position / 4));
      if (words[position % 4] * (range - position) >> 32 < frames - taken)
        row[taken++] = static_cast<int32_t>(position);
    }
  }
  return out;
}

Batch rows_of(const Batch& batch, int first, int last) {
  Batch out;
  out.batch = last - first;
  out.frames = batch.frames;
  out.elements = batch.elements;
  out.channels = batch.channels;
  out.split = batch.split;
  out.noise = batch.noise;
  out.seed = batch.seed;
  const auto cut = [&](const auto& from, auto& to) {
    const auto each = static_cast<std::ptrdiff_t>(from.size()) / batch.batch;
    to.assign(from.begin() + first * each, from.begin() + last * each);
  };
  cut(batch.samples, out.samples);
  cut(batch.symbol, out.symbol);
  cut(batch.gap, out.gap);
  cut(batch.target, out.target);
  cut(batch.element, out.element);
  cut(batch.start, out.start);
  cut(batch.state, out.state);
  cut(batch.dense, out.dense);
  cut(batch.value, out.value);
  return out;
}

int64_t asked_frames(const Batch& batch, const Task& task) {
  std::vector<int64_t> wanted(static_cast<size_t>(batch.batch) * static_cast<size_t>(batch.frames));
  task.targets(batch, wanted.data());
  return std::count_if(wanted.begin(), wanted.end(), [](int64_t t) { return t >= 0; });
}

std::vector<uint64_t> samples_of_update(const SampleOrder& order, int batch, int64_t update) {
  std::vector<uint64_t> out(static_cast<size_t>(batch));
  const uint64_t first = static_cast<uint64_t>(update) * static_cast<uint64_t>(batch);
  for (size_t i = 0; i < out.size(); ++i) out[i] = order.at(first + i);
  return out;
}

Loader::Loader(const RunData& data, Split split, int batch, int64_t first, int64_t last, const SampleOrder& order,
               int pad_to)
    : data_(data), split_(split), batch_(batch), first_(first), last_(last), order_(order), pad_to_(pad_to) {
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
      data_.train_task(update)->fill(split_, samples_of_update(order_, batch_, update), made, pad_to_);
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
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failure_ || ended_ || !ready_.empty(); });
  if (ready_.empty() && failure_) std::rethrow_exception(failure_);
  if (ready_.empty()) throw check_failed("loader", "no batches left");
  Batch out = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return out;
}

}  // namespace sb
