#pragma once
#include <chrono>

namespace sb {

// Seconds that pass while work() runs.
template <class Work>
double seconds_of(const Work& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace sb
