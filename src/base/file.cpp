#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace sb {
namespace {

constexpr size_t kBuffer = size_t{1} << 18;
constexpr int kNameAttempts = 100;

std::string temporary_name(const std::string& target, int attempt) {
  return target + ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

std::string read_file(const std::string& path, size_t limit) {
  const auto fail = [&](const std::string& why) { return bad_input("file", "cannot read " + path + ": " + why); };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) throw fail(std::strerror(errno));
  std::string content;
  size_t filled = 0;
  while (true) {
    if (content.size() - filled < kBuffer) content.resize(filled + kBuffer);
    const ssize_t got = ::read(file.fd, content.data() + filled, kBuffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw fail(std::strerror(errno));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    if (filled > limit) throw fail("expected at most " + std::to_string(limit) + " bytes, got more");
  }
  content.resize(filled);
  return content;
}

AtomicFile::AtomicFile(const std::string& path, FileSystem& files) : files_(files), shown_(path), target_(path) {
  if (path.empty()) throw cannot_write("file", "cannot write a file without a name");
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    std::error_code ignored;
    const auto real = std::filesystem::weakly_canonical(path, ignored);
    if (!ignored) target_ = real.string();
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
    temporary_ = temporary_name(target_, attempt);
    fd_ = files_.create(temporary_);
    if (fd_ >= 0) return;
    temporary_.clear();
    if (errno != EEXIST || attempt == kNameAttempts) fail("create");
  }
}

void AtomicFile::discard() {
  if (fd_ >= 0) files_.close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) files_.remove(temporary_);
  temporary_.clear();
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
  buffer_.append(static_cast<const char*>(data), size);
  if (buffer_.size() >= kBuffer) flush();
}

void AtomicFile::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t wrote = files_.write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote == 0) errno = EIO;
    if (wrote <= 0) fail("write");
    done += static_cast<size_t>(wrote);
  }
  buffer_.clear();
}

void AtomicFile::commit() {
  if (fd_ < 0) throw cannot_write("file", "cannot write " + shown_ + ": already closed");
  flush();
  if (!direct_ && files_.sync(fd_) != 0) fail("sync");
  for (int attempt = 0; !direct_ && temporary_.empty(); ++attempt) {
    const std::string name = temporary_name(target_, attempt);
    if (files_.link(fd_, name) == 0) {
      temporary_ = name;
    } else if (errno != EEXIST || attempt == kNameAttempts) {
      fail("link");
    }
  }
  const int closed = files_.close(fd_);
  fd_ = -1;
  if (closed != 0) fail("close");
  if (direct_) return;
  if (files_.rename(temporary_, target_) != 0) fail("rename");
  temporary_.clear();
  if (files_.sync_folder(folder_) != 0) fail("sync folder");
}

void write_file_atomically(const std::string& path, std::string_view content, FileSystem& files) {
  AtomicFile file(path, files);
  file.write(content);
  file.commit();
}

}  // namespace sb
