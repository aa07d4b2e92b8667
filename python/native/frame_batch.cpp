#include "native/frame_batch.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace sb::python {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPolled = size_t{1} << 22;  // numbers written between two polls

}  // namespace

std::unique_ptr<void, decltype(&std::free)> fresh_memory(size_t& bytes) {
  const bool large = bytes >= kHugePage;
  if (large) bytes = (bytes + bytes / 8 + kHugePage - 1) / kHugePage * kHugePage;  // lengths of batches differ a little
  std::unique_ptr<void, decltype(&std::free)> out(large ? std::aligned_alloc(kHugePage, bytes) : std::malloc(bytes),
                                                  &std::free);
  if (!out) throw std::bad_alloc();
  if (large) ::madvise(out.get(), bytes, MADV_HUGEPAGE);  // a wish: without it everything works
  return out;
}

void FrameBatch::fill(const Task& task, Split split, std::span<const uint64_t> samples, bool with_frames, int pad_to,
                      const std::function<void()>& poll) {
  task.fill(split, samples, batch, pad_to);
  if (poll) poll();
  const size_t cells = static_cast<size_t>(batch.batch) * static_cast<size_t>(batch.frames);
  task.targets(batch, targets.resize(cells));
  if (!batch.value.empty()) std::fill(batch.state.begin(), batch.state.end(), -1);  // numbers are asked, not states
  mask.resize(cells);
  std::transform(batch.element.begin(), batch.element.end(), mask.begin(),
                 [](int32_t element) { return static_cast<uint8_t>(element >= 0); });
  indices.assign(samples.begin(), samples.end());
  dense = with_frames;
  if (!dense) return;
  const size_t row = static_cast<size_t>(batch.frames) * static_cast<size_t>(batch.channels);
  float* out = frames.resize(cells * static_cast<size_t>(batch.channels));
  size_t unpolled = 0;
  for (int b = 0; b < batch.batch; ++b) {
    expand_row(batch, b, 0, batch.frames, out + row * static_cast<size_t>(b));
    unpolled += row;
    if (!poll || unpolled < kPolled) continue;
    unpolled = 0;
    poll();
  }
}

double batch_bytes(const Task& task, Split split, uint64_t samples, bool dense, int pad_to) {
  constexpr double kFrame = 2 + 1 + 4 + 4 + 8 + 1;  // symbol, gap, target, element, answer, mask
  const TaskShape shape = task.shape();
  const double frames = std::max(task.mean_frames(split), static_cast<double>(pad_to));
  double numbers = dense ? shape.channels : 0;  // floats of a frame: what is handed out, and what the task writes
  if (shape.dense) numbers += shape.channels;
  if (shape.loss == Loss::squared_error) numbers += shape.answers;
  return static_cast<double>(samples) * frames * (kFrame + 4 * numbers);
}

std::shared_ptr<FrameBatch> BatchPool::take() {
  std::unique_ptr<FrameBatch> batch;
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (!batch) batch = std::make_unique<FrameBatch>();
  return {batch.release(), [pool = weak_from_this()](FrameBatch* done) {
            std::unique_ptr<FrameBatch> owned(done);
            if (const auto alive = pool.lock()) alive->give_back(std::move(owned));
          }};
}

void BatchPool::give_back(std::unique_ptr<FrameBatch> batch) {
  if (::getpid() != process_) return;
  const std::lock_guard lock(mutex_);
  if (spare_.size() < most_) spare_.push_back(std::move(batch));
}

}  // namespace sb::python
