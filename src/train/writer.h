// Writes a run's files: at once, or beside the updates in a thread of its own, one file after the other in the order
// they were asked for.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace sb {

class Writer {
 public:
  explicit Writer(bool beside);
  ~Writer();  // when all is written; what failed goes unsaid
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool beside() const { return beside_; }
  bool busy() const;
  // Throws what an earlier one threw; those behind it were not written.
  void run(std::function<void()> write);
  void wait();  // until not busy; throws as run() does

 private:
  void work();
  void raise();  // with the lock

  const bool beside_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;  // the first is under way
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace sb
