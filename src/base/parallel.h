// A parallel loop over chunks. Chunks are handed out in order; results must not depend on which thread runs a chunk.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace sb {

// Threads to use for `requested` (0: all cores), never more than there are chunks.
inline int thread_count(int requested, size_t chunks) {
  const auto cores = static_cast<size_t>(std::max(1U, std::thread::hardware_concurrency()));
  const size_t wanted = requested > 0 ? static_cast<size_t>(requested) : cores;
  return static_cast<int>(std::max<size_t>(1, std::min(wanted, chunks)));
}

// A grain that gives every thread its share of `count` in few chunks.
inline size_t even_grain(size_t count, int threads) {
  return std::clamp<size_t>(count / static_cast<size_t>(thread_count(threads, count)), 1, 16);
}

// Calls body(begin, end) for [0, count) in chunks of `grain`. After the first exception no further chunk starts, and
// the exception is rethrown here.
template <class Body>
void parallel_for(size_t count, size_t grain, int threads, const Body& body) {
  grain = std::max<size_t>(1, grain);
  const size_t chunks = count / grain + (count % grain != 0 ? 1 : 0);
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto work = [&] {
    for (size_t chunk = next++; chunk < chunks; chunk = next++) {
      try {
        body(chunk * grain, std::min(count, (chunk + 1) * grain));
      } catch (...) {
        const std::lock_guard lock(failure_lock);
        if (!failure) failure = std::current_exception();
        next = chunks;
      }
    }
  };
  std::vector<std::jthread> others;
  try {
    for (int t = 1; t < thread_count(threads, chunks); ++t) others.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads are available: the existing threads do the work.
  }
  work();
  others.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace sb
