// A file system with an accident at its Nth call; it never waits for the disk.
#pragma once
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/file_system.h"

namespace sb::test {

class ScriptedFileSystem : public FileSystem {
 public:
  enum class Accident { none, no_space, io_error, short_write, killed };

  explicit ScriptedFileSystem(int at = -1, Accident accident = Accident::none) : at_(at), accident_(accident) {}

  bool unnamed_files = true;  // false: as on file systems without O_TMPFILE
  bool happened() const { return calls_ > at_; }

  int open_unnamed(const std::string& folder) override {
    if (unnamed_files) return fails() ? -1 : FileSystem::open_unnamed(folder);
    errno = EOPNOTSUPP;
    return -1;
  }
  int create(const std::string& path) override { return fails() ? -1 : FileSystem::create(path); }
  ssize_t write(int fd, const void* data, size_t size) override {
    const bool half = calls_ == at_ && accident_ != Accident::none;
    const ssize_t done = half && size > 1 ? FileSystem::write(fd, data, size / 2) : 0;
    if (fails()) return -1;
    return done > 0 ? done : FileSystem::write(fd, data, size);
  }
  int sync(int) override { return fails() ? -1 : 0; }
  int close(int fd) override {
    const int result = FileSystem::close(fd);
    return fails() ? -1 : result;
  }
  int link(int fd, const std::string& path) override { return fails() ? -1 : FileSystem::link(fd, path); }
  int rename(const std::string& from, const std::string& to) override {
    return fails() ? -1 : FileSystem::rename(from, to);
  }
  int remove(const std::string& path) override { return fails() ? -1 : FileSystem::remove(path); }
  int sync_folder(const std::string&) override { return fails() ? -1 : 0; }

 private:
  bool fails() {
    if (calls_++ != at_) return false;
    if (accident_ == Accident::killed) ::kill(::getpid(), SIGKILL);
    errno = accident_ == Accident::no_space ? ENOSPC : EIO;
    return accident_ == Accident::no_space || accident_ == Accident::io_error;
  }

  int at_;
  Accident accident_;
  int calls_ = 0;
};

}  // namespace sb::test
