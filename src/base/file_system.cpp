#include "base/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace sb {

int FileSystem::open_unnamed(const std::string& folder) {
#ifdef O_TMPFILE
  return ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
#else
  static_cast<void>(folder);
  errno = EOPNOTSUPP;
  return -1;
#endif
}

int FileSystem::create(const std::string& path) {
  return ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
}

int FileSystem::open_existing(const std::string& path) {
  // A pipe that nobody reads would block the open for ever.
  constexpr int kTries = 100;
  constexpr useconds_t kPause = 100'000;
  int fd = -1;
  for (int i = 0; i < kTries; ++i) {
    fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 || errno != ENXIO) break;
    ::usleep(kPause);
  }
  if (fd >= 0) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

ssize_t FileSystem::write(int fd, const void* data, size_t size) {
  return ::write(fd, data, size);
}

int FileSystem::sync(int fd) {
  return ::fsync(fd);
}

int FileSystem::close(int fd) {
  return ::close(fd);
}

int FileSystem::link(int fd, const std::string& path) {
  const std::string source = "/proc/self/fd/" + std::to_string(fd);
  return ::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW);
}

int FileSystem::rename(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str());
}

int FileSystem::remove(const std::string& path) {
  return ::unlink(path.c_str());
}

int FileSystem::sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  const int result = ::fsync(fd);
  const int saved = errno;
  ::close(fd);
  errno = saved;
  // Some network and overlay file systems cannot sync a folder; the file itself is safe by then.
  return result != 0 && errno != EINVAL ? -1 : 0;
}

FileSystem& real_file_system() {
  static FileSystem instance;
  return instance;
}

}  // namespace sb
