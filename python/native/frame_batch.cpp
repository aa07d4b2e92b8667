#include "native/frame_batch.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace sb::python {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

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

void FrameBatch::fill(const Task& task, Split split, std::span<const uint64_t> samples, bool with_frames, int pad_to) {
  task.fill(split, samples, batch, pad_to);
  const size_t cells = static_cast<size_t>(batch.batch) * static_cast<size_t>(batch.frames);
  task.targets(batch, targets.resize(cells));
  mask.resize(cells);
  std::transform(batch.element.begin(), batch.element.end(), mask.begin(),
                 [](int32_t element) { return static_cast<uint8_t>(element >= 0); });
  indices.assign(samples.begin(), samples.end());
  dense = with_frames;
  if (!dense) return;
  expand_frames(batch, frames.resize(cells * static_cast<size_t>(batch.channels)));
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
