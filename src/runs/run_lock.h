// One process a run: an advisory lock that the system drops with its holder, however that ends.
#pragma once
#include <string>

namespace sb {

class RunLock {
 public:
  // Throws Error(stopped) that says who holds it, cannot_write if the file cannot be made.
  explicit RunLock(const std::string& path);
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace sb
