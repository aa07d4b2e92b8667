// Files appear whole or not at all.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/file_system.h"

namespace sb {

// The whole of a regular file; bad_input if it cannot be read, is a pipe, device or folder, or is longer than `limit`
// bytes. Never waits for a writer.
std::string read_file(const std::string& path, size_t limit);
// The same, and from a pipe (`<(…)`) until its writer is done; refused where nothing comes for `patience_seconds`.
std::string read_file_or_pipe(const std::string& path, size_t limit, double patience_seconds = 10);

// Writes beside the target and takes its name in commit(): reader, crash or full disk never meet half a file.
// Where the file system allows it the file has no name before commit(), so that even SIGKILL leaves nothing behind.
// An existing target keeps its content until then; a symbolic link keeps being one and its target is written, whether
// that exists or not; a device or pipe is written directly. Every failure throws cannot_write with the target's name,
// and the temporary is removed.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path, FileSystem& files = real_file_system());
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);  // large pieces go to the file from where they lie
  void write(std::string_view text) { write(text.data(), text.size()); }
  void prepare();  // all of commit() that can run out of space: two files prepared before either is committed
  void commit();
  bool direct() const { return direct_; }  // a device or pipe
  size_t bytes() const { return bytes_; }

 private:
  void flush();
  void put(const char* data, size_t size);
  void open_temporary();
  void name_temporary(const std::string& name);  // empty: it has none any more
  void discard();
  [[noreturn]] void fail(const std::string& doing);

  FileSystem& files_;
  std::string shown_;   // as the caller named it
  std::string target_;  // symbolic links resolved
  std::string folder_;
  std::string temporary_;  // empty while the file has no name
  std::string buffer_;
  size_t bytes_ = 0;
  int fd_ = -1;
  int unfinished_ = -1;  // its entry for remove_unfinished_files()
  bool direct_ = false, prepared_ = false;
};

// Removes the temporary of every AtomicFile that was not committed (of the first few, if there are many at a time). For
// a signal handler that ends the process: async-signal-safe.
void remove_unfinished_files() noexcept;

void write_file_atomically(const std::string& path, std::string_view content, FileSystem& files = real_file_system());

}  // namespace sb
