#include "kernels/cpu/block_pool.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>

#include "kernels/plain_mode.h"

namespace sb::cpu {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kKeptAtLeast = size_t{1} << 28;  // free bytes that are kept whatever is in use

// Eight sizes an octave: blocks of nearly equal requests are exchangeable.
size_t block_size(size_t bytes) {
  const size_t step = std::max<size_t>(kPage, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

void* map(size_t size) {
  if (size < kHugePage) {
    void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    return block;
  }
  // Map more, cut what lies before and behind the first whole huge page.
  void* wide = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (wide == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(wide);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(wide) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + size, kHugePage - before);
  madvise(begin + before, size, MADV_HUGEPAGE);  // a wish: systems without huge pages ignore it
  return begin + before;
}

class Pool {
 public:
  void* take(size_t bytes) {
    const size_t size = block_size(bytes);
    {
      const std::lock_guard lock(mutex_);
      used_ += size;
      if (const auto found = free_.find(size); found != free_.end()) {
        void* block = found->second;
        free_.erase(found);
        free_bytes_ -= size;
        return block;
      }
    }
    return map(size);
  }

  void give(void* block, size_t bytes) {
    const size_t size = block_size(bytes);
    const std::lock_guard lock(mutex_);
    used_ -= size;
    most_used_ = std::max(most_used_, used_ + size);
    free_.emplace(size, block);
    free_bytes_ += size;
    if (used_ + free_bytes_ > most_used_ + kKeptAtLeast) release(kKeptAtLeast);
  }

  void release_all() {
    const std::lock_guard lock(mutex_);
    release(0);
    most_used_ = used_;
  }

  size_t free_bytes() {
    const std::lock_guard lock(mutex_);
    return free_bytes_;
  }

 private:
  // Largest first, until no more than `kept` bytes are free.
  void release(size_t kept) {
    while (free_bytes_ > kept) {
      const auto last = std::prev(free_.end());
      munmap(last->second, last->first);
      free_bytes_ -= last->first;
      free_.erase(last);
    }
  }

  std::mutex mutex_;
  std::multimap<size_t, void*> free_;
  size_t used_ = 0, most_used_ = 0, free_bytes_ = 0;
};

// Never destroyed: tensors with static life may be freed after it.
Pool& pool() {
  static Pool* const only = new Pool;
  return *only;
}

// libtorch also frees by address alone, so a block must be known by its address: those of the pool begin a page, as
// few others do, and are listed.
class PoolAllocator final : public c10::Allocator {
 public:
  explicit PoolAllocator(c10::Allocator* small) : small_(small) {}

  // Overrides either form: libtorch 2 took away the const.
  c10::DataPtr allocate(size_t bytes) const {
    void* data = nullptr;
    if (bytes < kPooledBytes || kernels::plain_mode()) {
      data = small_->raw_allocate(bytes);
    } else {
      data = take_block(bytes);
      const std::lock_guard lock(mutex_);
      sizes_[data] = bytes;
    }
    return {data, data, free_any, at::Device(at::kCPU)};
  }
  c10::DataPtr allocate(size_t bytes) { return std::as_const(*this).allocate(bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return free_any; }
  void copy_data(void* to, const void* from, size_t bytes) const { std::memcpy(to, from, bytes); }

  // For the process; never destroyed.
  static PoolAllocator& installed() {
    static PoolAllocator* const only = [] {
      auto* const made = new PoolAllocator(c10::GetCPUAllocator());
      c10::SetCPUAllocator(made, 1);
      return made;
    }();
    return *only;
  }

 private:
  static void free_any(void* data) { installed().free(data); }
  void free(void* data) {
    if (reinterpret_cast<uintptr_t>(data) % kPage == 0 && data) {
      std::unique_lock lock(mutex_);
      if (const auto found = sizes_.find(data); found != sizes_.end()) {
        const size_t bytes = found->second;
        sizes_.erase(found);
        lock.unlock();
        return give_block(data, bytes);
      }
    }
    small_->raw_deallocate(data);
  }

  c10::Allocator* small_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<void*, size_t> sizes_;
};

}  // namespace

void* take_block(size_t bytes) {
  return pool().take(bytes);
}
void give_block(void* block, size_t bytes) {
  pool().give(block, bytes);
}
void release_free_blocks() {
  pool().release_all();
}
size_t free_block_bytes() {
  return pool().free_bytes();
}

void pool_tensor_memory() {
  PoolAllocator::installed();
}

}  // namespace sb::cpu
