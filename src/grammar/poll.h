// Calls a callback once in many steps, for loops with short iterations.
#pragma once
#include <cstdint>
#include <functional>

namespace sb {

class Poll {
 public:
  explicit Poll(const std::function<void()>& call) : call_(call) {}  // `call` may be empty; it must outlive this object

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
