#include "base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr size_t kBuffer = size_t{1} << 18;
constexpr size_t kLargestWrite = size_t{1} << 24;  // between two writes, a failing disk or a signal is noticed
constexpr int kNameAttempts = 100;
constexpr int kMaxLinks = 40;  // the limit of Linux

// Process ids alone are not unique on a disk that several machines share, so the name also has a random number: no
// process may rename a file that another one is writing.
std::string temporary_name(const std::string& target, int attempt) {
  static const uint32_t machine = std::random_device()();
  return formatted("{}.partial-{}-{:08x}-{}", target, ::getpid(), machine, attempt);
}

// Names of temporaries, in memory that a signal handler can read.
struct Unfinished {
  enum State : int { free, taken, named };
  std::atomic<int> state = free;
  char name[4096] = {};
};
constinit Unfinished unfinished_files[8];

// The entry's number; -1: there is no room for it.
int remember_unfinished(const std::string& name) {
  for (int i = 0; i < static_cast<int>(std::size(unfinished_files)) && name.size() < sizeof(Unfinished::name); ++i) {
    Unfinished& entry = unfinished_files[i];
    int expected = Unfinished::free;
    if (!entry.state.compare_exchange_strong(expected, Unfinished::taken)) continue;
    std::memcpy(entry.name, name.c_str(), name.size() + 1);
    entry.state = Unfinished::named;
    return i;
  }
  return -1;
}

// Non-blocking, since opening a pipe without a writer would block.
Descriptor open_for_reading(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

std::string_view kind_of(mode_t mode) {
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

// Waits until there is data or the writer has closed; also waits for a first writer. Returns false on timeout.
bool wait_for_data(int fd, double seconds) {
  pollfd asked{fd, POLLIN, 0};
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int ready = ::poll(&asked, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// Reads up to `limit` bytes. `expected`: size of the first read. `patience` < 0: a regular file, which never blocks.
template <class Fail>
std::string read_bounded(int fd, size_t expected, size_t limit, double patience, const Fail& fail) {
  const auto too_long = [&] { return fail("expected at most " + std::to_string(limit) + " bytes, got more"); };
  if (expected > limit) throw too_long();
  std::string content;
  size_t filled = 0;
  while (true) {
    if (patience >= 0 && !wait_for_data(fd, patience))
      throw fail("nothing came from the pipe for " + shortest(patience) + " s");
    if (content.size() - filled < 1) content.resize(std::max(filled + kBuffer, expected + 1));
    const ssize_t got = ::read(fd, content.data() + filled, content.size() - filled);
    if (got < 0 && (errno == EINTR || (errno == EAGAIN && patience >= 0))) continue;
    if (got < 0) throw fail(std::strerror(errno));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    if (filled > limit) throw too_long();
  }
  content.resize(filled);
  return content;
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string read_file(const std::string& path, size_t limit) {
  const auto fail = [&](const std::string& why) { return bad_input("file", "cannot read " + path + ": " + why); };
  const Descriptor file = open_for_reading(path);
  if (!file.open()) throw fail(std::strerror(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw fail(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw fail("expected a file, got " + std::string(kind_of(info.st_mode)));
  return read_bounded(file.get(), static_cast<size_t>(std::max<off_t>(0, info.st_size)), limit, -1, fail);
}

std::string read_file_or_pipe(const std::string& path, size_t limit, double patience_seconds) {
  const auto fail = [&](const std::string& why) { return bad_input("file", "cannot read " + path + ": " + why); };
  const Descriptor file = open_for_reading(path);
  if (!file.open()) throw fail(std::strerror(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw fail(std::strerror(errno));
  if (!S_ISFIFO(info.st_mode)) return read_file(path, limit);
  return read_bounded(file.get(), 0, limit, patience_seconds, fail);
}

AtomicFile::AtomicFile(const std::string& path, FileSystem& files) : files_(files), shown_(path), target_(path) {
  if (path.empty()) throw cannot_write("file", "cannot write a file without a name");
  struct stat info {};
  for (int links = 0; ::lstat(target_.c_str(), &info) == 0 && S_ISLNK(info.st_mode); ++links) {
    std::error_code failed;
    const auto next = std::filesystem::read_symlink(target_, failed);
    if (failed) throw cannot_write("file", "cannot write " + path + ": " + failed.message());
    if (links == kMaxLinks) throw cannot_write("file", "cannot write " + path + ": " + std::strerror(ELOOP));
    target_ = (std::filesystem::path(target_).parent_path() / next).string();
  }
  const std::string parent = std::filesystem::path(target_).parent_path().string();
  folder_ = parent.empty() ? "." : parent;
  if (::stat(target_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) throw cannot_write("file", "cannot write " + path + ": it is a folder");
    direct_ = true;
    fd_ = files_.open_existing(target_);
    if (fd_ < 0) fail("open");
  } else {
    open_temporary();
  }
  buffer_.reserve(kBuffer);
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::open_temporary() {
  fd_ = files_.open_unnamed(folder_);
  for (int attempt = 0; fd_ < 0; ++attempt) {
    name_temporary(temporary_name(target_, attempt));
    fd_ = files_.create(temporary_);
    if (fd_ >= 0) return;
    name_temporary("");
    if (errno != EEXIST || attempt == kNameAttempts) fail("create");
  }
}

void AtomicFile::name_temporary(const std::string& name) {
  temporary_ = name;
  if (unfinished_ >= 0) unfinished_files[unfinished_].state = Unfinished::free;
  unfinished_ = name.empty() ? -1 : remember_unfinished(name);
}

void AtomicFile::discard() {
  if (fd_ >= 0) files_.close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) files_.remove(temporary_);
  name_temporary("");
}

void AtomicFile::fail(const std::string& doing) {
  const int error = errno;
  discard();
  throw cannot_write("file", "cannot write " + shown_ + " (" + doing + "): " + std::strerror(error));
}

void AtomicFile::write(const void* data, size_t size) {
  if (fd_ < 0) throw cannot_write("file", "cannot write " + shown_ + ": already closed");
  bytes_ += size;
  if (buffer_.size() + size > kBuffer) flush();
  if (size >= kBuffer) {
    put(static_cast<const char*>(data), size);
  } else {
    buffer_.append(static_cast<const char*>(data), size);
  }
}

void AtomicFile::flush() {
  put(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::put(const char* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t wrote = files_.write(fd_, data + done, std::min(size - done, kLargestWrite));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote == 0) errno = EIO;
    if (wrote <= 0) fail("write");
    done += static_cast<size_t>(wrote);
  }
}

void AtomicFile::prepare() {
  if (fd_ < 0) throw cannot_write("file", "cannot write " + shown_ + ": already closed");
  flush();
  while (!direct_ && files_.sync(fd_) != 0)
    if (errno != EINTR) fail("sync");
  for (int attempt = 0; !direct_ && temporary_.empty(); ++attempt) {
    name_temporary(temporary_name(target_, attempt));
    if (files_.link(fd_, temporary_) == 0) break;
    name_temporary("");
    if (errno != EEXIST || attempt == kNameAttempts) fail("link");
  }
  const int closed = files_.close(fd_);
  fd_ = -1;
  if (closed != 0) fail("close");
  prepared_ = true;
}

void AtomicFile::commit() {
  if (!prepared_) prepare();
  prepared_ = false;
  if (direct_) return;
  if (files_.rename(temporary_, target_) != 0) fail("rename");
  name_temporary("");
  if (files_.sync_folder(folder_) != 0) fail("sync folder");
}

void make_folder(const std::string& where, const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw cannot_write(where, formatted("cannot make {}: {}", printable(folder, 400), failed.message()));
}

void remove_unfinished_files() noexcept {
  for (const Unfinished& entry : unfinished_files)
    if (entry.state == Unfinished::named) ::unlink(entry.name);
}

void write_file_atomically(const std::string& path, std::string_view content, FileSystem& files) {
  AtomicFile file(path, files);
  file.write(content);
  file.commit();
}

}  // namespace sb
