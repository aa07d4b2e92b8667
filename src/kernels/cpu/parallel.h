// Work shared among threads so that bytes never depend on their number: a task is done by one thread from start to end,
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

// Refers to a callable (first, last), which must outlive it.
class RangeBody {
 public:
  template <class Body, class = std::enable_if_t<!std::is_same_v<Body, RangeBody>>>
  RangeBody(const Body& body)  // implicit, as a lambda is handed over
      : body_(&body),
        call_([](const void* b, int64_t first, int64_t last) { (*static_cast<const Body*>(b))(first, last); }) {}
  void operator()(int64_t first, int64_t last) const { call_(body_, first, last); }

 private:
  const void* body_;
  void (*call_)(const void*, int64_t, int64_t);
};
// body(first, last) for ranges of at least `grain` that make up 0 .. items, on torch's threads; alone where called from
// one of them.
void parallel_for(int64_t items, int64_t grain, RangeBody body);

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

// body(task, arena), the arena empty and of `scratch` elements at the start of every task
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

// A division of `items` into ranges that depends on sizes only, so that sums over ranges do not see the thread count.
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
  // body(first, last), once a thread: for work that makes no sums over items
  template <class Body>
  void split(const Body& body) const {
    parallel_for(count, 1, [&](int64_t first, int64_t last) { body(begin(first), begin(last)); });
  }
};

}  // namespace sb::cpu
