// A file system that fails its Nth call, for tests that ask what a full disk or a dying device leaves behind.
#pragma once
#include <cerrno>

#include "base/file_system.h"

namespace sb::test {

class FaultyFileSystem : public FileSystem {
 public:
  enum class Fault { error, short_write };

  // Call number `fail_at` (from 0) fails with `error`; with short_write, a write takes only half of its bytes instead.
  explicit FaultyFileSystem(int fail_at, int error = ENOSPC, Fault fault = Fault::error)
      : fail_at_(fail_at), error_(error), fault_(fault) {}

  bool unnamed_files = true;  // false: as on file systems without O_TMPFILE
  int calls() const { return calls_; }
  bool failed() const { return failed_; }

  int open_unnamed(const std::string& folder) override {
    if (!unnamed_files) {
      errno = EOPNOTSUPP;
      return -1;
    }
    return fails() ? -1 : FileSystem::open_unnamed(folder);
  }
  int create(const std::string& path) override { return fails() ? -1 : FileSystem::create(path); }
  ssize_t write(int fd, const void* data, size_t size) override {
    if (!fails()) return FileSystem::write(fd, data, size);
    return fault_ == Fault::short_write && size > 1 ? FileSystem::write(fd, data, size / 2) : -1;
  }
  int sync(int fd) override { return fails() ? -1 : FileSystem::sync(fd); }
  int close(int fd) override {
    const bool fail = fails();
    const int result = FileSystem::close(fd);
    errno = error_;
    return fail ? -1 : result;
  }
  int link(int fd, const std::string& path) override { return fails() ? -1 : FileSystem::link(fd, path); }
  int rename(const std::string& from, const std::string& to) override {
    return fails() ? -1 : FileSystem::rename(from, to);
  }
  int sync_folder(const std::string& folder) override { return fails() ? -1 : FileSystem::sync_folder(folder); }

 private:
  bool fails() {
    const bool now = calls_++ == fail_at_;
    failed_ = failed_ || now;
    errno = error_;
    return now;
  }
  int fail_at_, error_;
  Fault fault_;
  int calls_ = 0;
  bool failed_ = false;
};

}  // namespace sb::test
