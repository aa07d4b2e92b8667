#pragma once
#include <chrono>

namespace sb {

// Measures the time since its construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Seconds that pass while work() runs.
template <class Work>
double seconds_of(const Work& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

}  // namespace sb
