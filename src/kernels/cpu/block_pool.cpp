#include "kernels/cpu/block_pool.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>

#include "kernels/backend.h"

namespace sb::cpu {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kKeptAtLeast = size_t{1} << 28;  // free bytes that are kept whatever is in use

// Rounds sizes to eight per power of two, so that requests of similar size can share blocks.
size_t block_size(size_t bytes) {
  const size_t step = std::max<size_t>(kPage, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

// Blocks start at different offsets in a page. Otherwise rows of two tensors that are read together would compete for
// the same lines of the L1 cache.
char* staggered(char* page) {
  static std::atomic<size_t> count{0};
  return page + count++ % 21 * 192;
}
char* page_of(void* block) {
  return static_cast<char*>(block) - reinterpret_cast<uintptr_t>(block) % kPage;
}

void* map(size_t size) {
  size += kPage;
  const size_t spare = size < kHugePage ? 0 : kHugePage;
  void* wide = mmap(nullptr, size + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (wide == MAP_FAILED) throw std::bad_alloc();
  char* begin = static_cast<char*>(wide);
  if (spare > 0) {  // unmap the parts before and after, so that the block starts at a huge page
    const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(wide) % kHugePage) % kHugePage;
    if (before > 0) munmap(begin, before);
    begin += before;
    if (before < spare) munmap(begin + size, spare - before);
    madvise(begin, size, MADV_HUGEPAGE);  // only a hint; ignored by systems without huge pages
  }
  return staggered(begin);
}
void unmap(void* block, size_t size) {
  munmap(page_of(block), size + kPage);
}

class Pool {
 public:
  void* take(size_t bytes) {
    const size_t size = block_size(bytes);
    {
      const std::lock_guard lock(mutex_);
      // Takes the block that was released last, which may still be in the cache.
      if (const auto after = free_.upper_bound(size); after != free_.begin() && std::prev(after)->first == size) {
        const auto found = std::prev(after);
        void* block = found->second;
        free_.erase(found);
        free_bytes_ -= size;
        used_ += size;
        return block;
      }
    }
    void* block = map(size);
    const std::lock_guard lock(mutex_);
    used_ += size;
    return block;
  }

  void give(void* block, size_t bytes) {
    const size_t size = block_size(bytes);
    const std::lock_guard lock(mutex_);
    used_ -= size;
    most_used_ = std::max(most_used_, used_ + size);
    try {
      free_.emplace(size, block);
    } catch (const std::bad_alloc&) {  // cannot be recorded; freeing a tensor must not throw
      unmap(block, size);
      return;
    }
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
      unmap(last->second, last->first);
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

// libtorch also frees by address alone, so blocks are listed by their addresses.
class PoolAllocator final : public c10::Allocator {
 public:
  explicit PoolAllocator(c10::Allocator* small) : small_(small) {}

  // Overrides either signature: libtorch 2 removed the const.
  c10::DataPtr allocate(size_t bytes) const {
    void* data = nullptr;
    if (bytes < kPooledBytes || kernels::aten_is_forced()) {
      data = small_->raw_allocate(bytes);
    } else {
      data = take_block(bytes);
      try {
        const std::lock_guard lock(mutex_);
        sizes_[data] = bytes;
      } catch (...) {
        give_block(data, bytes);
        throw;
      }
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
    size_t bytes = 0;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = sizes_.find(data); found != sizes_.end()) {
        bytes = found->second;
        sizes_.erase(found);
      }
    }
    bytes > 0 ? give_block(data, bytes) : small_->raw_deallocate(data);
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
