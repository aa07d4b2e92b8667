#include "train/writer.h"

#include <utility>

namespace sb {

Writer::Writer(bool asynchronous) : asynchronous_(asynchronous) {
  if (asynchronous) worker_ = std::thread([this] { work(); });
}

Writer::~Writer() {
  if (!asynchronous_) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void Writer::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::function<void()>& write = waiting_.front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      write();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    waiting_.pop_front();
    if (failure) {
      failure_ = failure;
      waiting_.clear();
    }
    changed_.notify_all();
  }
}

bool Writer::busy() const {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

void Writer::raise() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Writer::run(std::function<void()> write) {
  if (!asynchronous_) return write();
  const std::lock_guard lock(mutex_);
  raise();
  waiting_.push_back(std::move(write));
  changed_.notify_all();
}

void Writer::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty(); });
  raise();
}

}  // namespace sb
