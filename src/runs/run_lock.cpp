#include "runs/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"

namespace sb {
namespace {

std::string holder_line() {
  char host[256] = "unknown";
  ::gethostname(host, sizeof(host) - 1);
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char since[32];
  std::strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return formatted("process {} on {} since {}\n", ::getpid(), host, since);
}

std::string read_holder(int fd) {
  char text[512];
  const ssize_t size = ::pread(fd, text, sizeof(text), 0);
  std::string line(text, static_cast<size_t>(size > 0 ? size : 0));
  line.erase(std::min(line.find('\n'), line.size()));
  return line.empty() ? "another process" : printable(line, 200);
}

}  // namespace

RunLock::RunLock(const std::string& path)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666)) {
  if (fd_ < 0) {
    const std::string why = errno == ELOOP ? "it is a symbolic link" : std::strerror(errno);
    throw cannot_write("run", formatted("cannot write {}: {}", path, why));
  }
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(std::exchange(fd_, -1));
    throw cannot_write("run", formatted("cannot write {}: it is not a file", path));
  }
  while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    const std::string holder = read_holder(fd_);
    ::close(std::exchange(fd_, -1));
    if (error == EWOULDBLOCK) throw Error(Exit::stopped, formatted("[run] {} is held by {}", path, holder));
    throw cannot_write("run", formatted("cannot lock {}: {}", path, std::strerror(error)));
  }
  // Only a message for the next one: the lock holds without it. A file with a second name is somebody else's too.
  if (info.st_nlink != 1) return;
  const std::string line = holder_line();
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, line.data(), line.size(), 0) < 0) return;
}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

// "1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF", the inode last of the three. Taking the lock for a moment could
// turn its next holder away.
std::optional<bool> lock_is_held(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  std::ifstream locks("/proc/locks");
  if (!locks) return std::nullopt;
  const std::string inode = formatted(":{} ", info.st_ino);
  for (std::string line; std::getline(locks, line);)
    if (line.find("FLOCK") != std::string::npos && line.find(inode) != std::string::npos) return true;
  return false;
}

}  // namespace sb
