// How far long work has come, on standard error: a line that redraws itself on a terminal, plain lines elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace sb::cli {

class Progress {
 public:
  Progress(std::string what, uint64_t total, bool quiet = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(uint64_t done) const;

  std::string what_;
  uint64_t total_;
  bool quiet_, terminal_, drawn_ = false;
  Clock::time_point began_ = Clock::now(), shown_ = began_;
};

}  // namespace sb::cli
