// One process a run: an advisory lock that the system drops with its holder, however that ends.
#pragma once
#include <optional>
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

// Whether somebody holds the lock of this path, asked without touching it; nothing where the system does not say.
std::optional<bool> lock_is_held(const std::string& path);

}  // namespace sb
