// Batches as Python sees them, and a pool that reuses their buffers once Python has released them.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <type_traits>
#include <vector>

#include "native/task.h"

namespace sb::python {

// Allocates at least `bytes` bytes, uninitialised; large blocks use huge pages, since the first touch of a small page
// costs twice as much as filling it (bench/notes/python.md). Sets `bytes` to the allocated size.
std::unique_ptr<void, decltype(&std::free)> fresh_memory(size_t& bytes);

// Uninitialised array. The caller writes all values after every resize(), so growing neither copies nor clears.
template <class T>
class Block {
  static_assert(std::is_trivial_v<T>);

 public:
  T* resize(size_t count) {
    if (count * sizeof(T) > bytes_) {
      memory_.reset();  // free the old memory before allocating the new
      bytes_ = 0;
      size_t bytes = count * sizeof(T);
      memory_ = fresh_memory(bytes);
      bytes_ = bytes;
    }
    return static_cast<T*>(memory_.get());
  }
  const T* data() const { return static_cast<const T*>(memory_.get()); }

 private:
  std::unique_ptr<void, decltype(&std::free)> memory_{nullptr, &std::free};
  size_t bytes_ = 0;
};

// A batch of tasks/batch.h with its targets and, on request, dense frames.
struct FrameBatch {
  Batch batch;
  bool dense = false;
  Block<float> frames;           // [batch][frames][channels]
  Block<int64_t> targets;        // [batch][frames]: the answer; -1: none
  std::vector<uint8_t> mask;     // [batch][frames]: 0 on padding
  std::vector<int64_t> indices;  // [batch]

  // `poll` is called now and then and ends the work by throwing.
  void fill(const Task& task, Split split, std::span<const uint64_t> samples, bool with_frames, int pad_to,
            const std::function<void()>& poll = {});
};

// What a batch of so many samples takes; their lengths are the task's mean.
double batch_bytes(const Task& task, Split split, uint64_t samples, bool dense, int pad_to);

// Large buffers are kept for the next batch: fresh pages cost more than filling them.
class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  explicit BatchPool(size_t most) : most_(most) {}
  std::shared_ptr<FrameBatch> take();

 private:
  void give_back(std::unique_ptr<FrameBatch> batch);

  const size_t most_;
  const pid_t process_ = ::getpid();  // after a fork, the mutex may be locked by a thread that does not exist
  std::mutex mutex_;
  std::vector<std::unique_ptr<FrameBatch>> spare_;
};

}  // namespace sb::python
