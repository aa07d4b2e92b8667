// Parallel loops whose results do not depend on the number of threads: one thread executes a task from start to end,
// and sums over tasks are made afterwards, in task order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include "kernels/cpu/block_pool.h"
#include "kernels/poison.h"

namespace sb::cpu {

// Non-owning reference to a callable (first, last), which must outlive this object.
class RangeBody {
 public:
  template <class Body, class = std::enable_if_t<!std::is_same_v<Body, RangeBody>>>
  RangeBody(const Body& body)  // implicit, so that callers can pass a lambda
      : body_(&body),
        call_([](const void* b, int64_t first, int64_t last) { (*static_cast<const Body*>(b))(first, last); }) {}
  void operator()(int64_t first, int64_t last) const { call_(body_, first, last); }

 private:
  const void* body_;
  void (*call_)(const void*, int64_t, int64_t);
};
// Divides [0, items) into ranges of at least `grain` items and calls body(first, last) for each on torch's threads. If
// called from one of these threads, it runs on that thread alone.
void parallel_for(int64_t items, int64_t grain, RangeBody body);
int64_t thread_count();  // of parallel_for; may choose how work is divided, but no result

// Scratch memory of one task: a bump allocator with aligned allocations. The thread's next task reuses the memory.
template <class T>
class Arena {
 public:
  explicit Arena(int64_t elements) : size_(elements), data_(allocate(bytes_of(elements)), Free{bytes_of(elements)}) {
    if (kernels::buffers_are_poisoned()) std::fill_n(data_.get(), size_, std::numeric_limits<T>::quiet_NaN());
  }
  // Returns n uninitialised elements, aligned to a cache line. Throws std::bad_alloc if the arena is full.
  T* take(int64_t n) {
    T* p = data_.get() + used_;
    used_ += rounded(n);
    if (used_ > size_) throw std::bad_alloc();
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
  parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) body(task);
  });
}

// body(task, arena) for every task; the arena has `scratch` elements and is empty when a task starts
template <class T, class Body>
void for_each_task(int64_t tasks, int64_t scratch, const Body& body) {
  parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
    Arena<T> arena(scratch);
    for (int64_t task = begin; task < end; ++task) {
      arena.reset();
      body(task, arena);
    }
  });
}

// Divides `items` into ranges by sizes only, so that sums over ranges do not depend on the number of threads.
struct Ranges {
  int64_t items, count;
  Ranges(int64_t number, int64_t elements_each, int64_t most = 16)
      : items(number), count(std::clamp<int64_t>(number * elements_each / 8192, 1, std::max<int64_t>(1, most))) {
    count = std::max<int64_t>(1, std::min(count, items));
  }
  int64_t begin(int64_t i) const { return items * i / count; }
  // body(range, first, last) for every range
  template <class Body>
  void parallel(const Body& body) const {
    for_each_task(count, [&](int64_t i) { body(i, begin(i), begin(i + 1)); });
  }
  // body(first, last) for one or more adjacent ranges at once; only for work without sums over items
  template <class Body>
  void split(const Body& body) const {
    parallel_for(count, 1, [&](int64_t first, int64_t last) { body(begin(first), begin(last)); });
  }
};

}  // namespace sb::cpu
