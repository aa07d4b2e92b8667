// Work shared among threads so that bytes never depend on their number: a task is done by one thread from start to end,
// and sums over tasks are made afterwards, in task order.
#pragma once
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <limits>
#include <memory>
#include <new>

#include "kernels/cpu/block_pool.h"
#include "kernels/cpu/simd.h"
#include "kernels/poison.h"

namespace sb::cpu {

// Scratch memory of one task: aligned, handed out in order, reused by the next task of the thread.
template <class T>
class Arena {
 public:
  explicit Arena(int64_t elements) : size_(elements), data_(allocate(bytes_of(elements)), Free{bytes_of(elements)}) {
    if (kernels::buffers_are_poisoned()) std::fill_n(data_.get(), size_, std::numeric_limits<T>::quiet_NaN());
  }
  // n elements, the start aligned to a cache line
  T* take(int64_t n) {
    T* p = data_.get() + used_;
    used_ += rounded(n);
    TORCH_INTERNAL_ASSERT(used_ <= size_);
    return p;
  }
  void reset() { used_ = 0; }
  static int64_t rounded(int64_t n) { return (n + kLine - 1) / kLine * kLine; }

 private:
  static constexpr std::align_val_t kAlign{64};
  static constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  struct Free {
    size_t bytes;
    void operator()(T* p) const { bytes < kPooledBytes ? ::operator delete(p, kAlign) : give_block(p, bytes); }
  };
  static size_t bytes_of(int64_t elements) { return static_cast<size_t>(elements) * sizeof(T); }
  static T* allocate(size_t bytes) {
    if (bytes == 0) return nullptr;
    return static_cast<T*>(bytes < kPooledBytes ? ::operator new(bytes, kAlign) : take_block(bytes));
  }
  int64_t size_;
  int64_t used_ = 0;
  std::unique_ptr<T, Free> data_;
};

// body(task) for every task in 0..tasks-1
template <class Body>
void for_each_task(int64_t tasks, const Body& body) {
  at::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) body(task);
  });
}

// body(task, arena), the arena empty and of `scratch` elements at the start of every task
template <class T, class Body>
void for_each_task(int64_t tasks, int64_t scratch, const Body& body) {
  at::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
    Arena<T> arena(scratch);
    for (int64_t task = begin; task < end; ++task) {
      arena.reset();
      body(task, arena);
    }
  });
}

}  // namespace sb::cpu
