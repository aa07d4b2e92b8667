// The system calls that write a file, behind an interface so that a test can make any of them fail.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <string>

namespace sb {

// Every call returns what POSIX returns: -1 and errno on failure.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open_unnamed(const std::string& folder);  // unnamed file: deleted on close unless linked
  virtual int create(const std::string& path);          // fails if `path` exists
  virtual int open_existing(const std::string& path);   // for devices and pipes
  virtual ssize_t write(int fd, const void* data, size_t size);
  virtual int sync(int fd);
  virtual int close(int fd);
  virtual int link(int fd, const std::string& path);  // gives an unnamed file a name
  virtual int rename(const std::string& from, const std::string& to);
  virtual int remove(const std::string& path);
  virtual int sync_folder(const std::string& folder);
};

FileSystem& real_file_system();

}  // namespace sb
