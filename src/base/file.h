// Bounded reads, and atomic writes: a file appears complete or not at all.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_system.h"

namespace sb {

// false for a path that cannot be looked at, too.
bool is_there(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// Reads a whole regular file. Throws bad_input if the path cannot be read, is a pipe, device or folder, or has more
// than `limit` bytes. Never waits for a writer.
std::string read_file(const std::string& path, size_t limit);
// Like read_file, but also reads a pipe (`<(…)`) to its end. Throws bad_input if the pipe delivers nothing for
// `patience_seconds`.
std::string read_file_or_pipe(const std::string& path, size_t limit, double patience_seconds = 10);

// Writes a temporary file next to the target; commit() renames the temporary to the target. Readers never see half a
// file, even after a crash or on a full disk. If the file system supports it, the temporary has no name while it is
// written, so even SIGKILL leaves nothing behind. An existing target keeps its content until commit(). A symbolic link
// stays a link: the file it points to is written, whether it exists or not. A device or pipe is written directly. Every
// failure throws cannot_write with the name of the target and removes the temporary.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path, FileSystem& files = real_file_system());
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);  // large pieces bypass the buffer
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Does all steps of commit() that can run out of space, so that two files can be prepared before either is committed.
  void prepare();
  void commit();
  bool direct() const { return direct_; }  // the target is a device or pipe
  size_t bytes() const { return bytes_; }

 private:
  void flush();
  void put(const char* data, size_t size);
  void open_temporary();
  void name_temporary(const std::string& name);  // empty: it no longer has a name
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
  int unfinished_ = -1;  // entry in the table of remove_unfinished_files(); -1: none
  bool direct_ = false, prepared_ = false;
};

// Removes the temporary of every uncommitted AtomicFile (only of the first few if many are open). Async-signal-safe:
// for a signal handler that ends the process.
void remove_unfinished_files() noexcept;

// Makes a folder, and those above it; throws cannot_write.
void make_folder(const std::string& where, const std::string& folder);

void write_file_atomically(const std::string& path, std::string_view content, FileSystem& files = real_file_system());

}  // namespace sb
