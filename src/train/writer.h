// Writes a run's files in the order of the requests, either synchronously or on a worker thread.
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
  explicit Writer(bool asynchronous);  // true: writes on a worker thread
  ~Writer();                           // waits for all writes; ignores errors
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool is_asynchronous() const { return asynchronous_; }
  bool busy() const;
  // Executes or queues `write`. Throws the exception of an earlier write, if one failed; the writes queued after the
  // failed one were dropped.
  void run(std::function<void()> write);
  void wait();  // until not busy; throws like run()

 private:
  void work();
  void raise();  // rethrows failure_; call with the lock held

  const bool asynchronous_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;  // the first one is in progress
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace sb
