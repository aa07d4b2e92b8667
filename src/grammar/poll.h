// A callback for loops whose rounds may be short: it is called once in many steps.
#pragma once
#include <cstdint>
#include <functional>

namespace sb {

class Poll {
 public:
  explicit Poll(const std::function<void()>& call) : call_(call) {}  // which may be empty, and outlives this

  void after(int64_t steps) {
    done_ += steps;
    if (done_ < kSteps) return;
    done_ = 0;
    if (call_) call_();
  }

 private:
  static constexpr int64_t kSteps = 1 << 21;  // draws or edges: some milliseconds
  const std::function<void()>& call_;
  int64_t done_ = 0;
};

}  // namespace sb
