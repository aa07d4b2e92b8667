#include "store/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "base/signal_blocker.h"
#include "base/text.h"

namespace sb {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLongestLock = 4096;  // bytes
constexpr int kMaxFollowed = 1000;     // files of a chain: what is longer is no lock of ours
constexpr int kStaleTries = 5;         // a file that another machine replaced while it was being opened
constexpr int kMaxAttempts = 1000;
constexpr auto kLook = std::chrono::milliseconds(20);

Error unusable(const std::string& path, const std::string& why) {
  return cannot_write("run", formatted("cannot write {}: {}", path, why));
}

struct Descriptor {
  int fd = -1;
  explicit Descriptor(int opened) : fd(opened) {}
  Descriptor(Descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// Opened by its name each time, which network file systems answer afresh; nothing where there is none.
std::optional<std::string> read_lock(const std::string& path) {
  for (int tries = 1;; ++tries) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    int error = file.fd < 0 ? errno : 0;
    struct stat info {};
    if (error == 0 && ::fstat(file.fd, &info) != 0) error = errno;
    if (error == 0 && !S_ISREG(info.st_mode)) throw unusable(path, "it is not a file");
    std::string content(kLongestLock, '\0');
    const ssize_t size = error == 0 ? ::pread(file.fd, content.data(), content.size(), 0) : 0;
    if (size < 0) error = errno;
    content.resize(static_cast<size_t>(std::max<ssize_t>(0, size)));
    if (error == 0) return content;
    if (error == ENOENT || error == ENOTDIR) return std::nullopt;
    if (error == ELOOP) throw unusable(path, "it is a symbolic link");
    if ((error != ESTALE && error != EINTR) || tries == kStaleTries) throw unusable(path, std::strerror(error));
  }
}

// The last file of a chain.
struct Last {
  std::string content, token;
  std::optional<LockRecord> record;  // absent: cut short, or of an older version
  std::vector<std::string> files;    // of the chain, PATH first
};

std::string next_of(const std::string& path, const std::string& token) {
  return path + ".next-" + token;
}

// Of a record that cannot be read: of its place in the chain and its bytes.
std::string token_of_unreadable(const std::string& name, const std::string& content) {
  const size_t slash = name.rfind('/');
  return "x" + sha256_hex(name.substr(slash == std::string::npos ? 0 : slash + 1) + "\n" + content).substr(0, 31);
}

std::optional<Last> follow(const std::string& path, const std::string& until = {}) {
  Last last;
  std::string at = path;
  while (const auto content = read_lock(at)) {
    last.content = *content;
    last.record = parse_lock(*content);
    last.token = last.record ? last.record->token : token_of_unreadable(at, *content);
    last.files.push_back(at);
    if (last.token == until) break;
    if (last.files.size() == kMaxFollowed) throw unusable(path, "it was taken over too often");
    at = next_of(path, last.token);
  }
  return last.files.empty() ? std::nullopt : std::optional(std::move(last));
}

// Asked in this order: a taker first follows the token and then renames its file over the chain.
bool holds(const std::string& path, const std::string& token) {
  if (read_lock(next_of(path, token))) return false;
  const auto last = follow(path, token);
  return last && last->token == token;
}

std::string described(const Last& last) {
  return last.record ? holder_text(*last.record) : "another process";
}

// "process 12 on host since …" of versions before, which locked the file by flock: it ended with them.
bool left_by_older(const std::string& path, const std::string& content) {
  if (!content.starts_with("process ")) return false;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return file.fd >= 0 && ::flock(file.fd, LOCK_SH | LOCK_NB) == 0;
}

// Whole, and where other machines see it: network file systems send what was written when any descriptor of the file
// is closed, and a local one need not wait for its disk.
bool written(int fd, const std::string& text) {
  const bool whole = ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return whole && copy >= 0 && ::close(copy) == 0;
}

void write_all(const std::string& path, int fd, const std::string& text) {
  if (!written(fd, text)) throw unusable(path, std::strerror(errno));
}

// The record as a file of the chain of `path`, if there was none of this name; its descriptor, or -1.
int make(const std::string& path, const std::string& target, const LockRecord& record) {
  const std::string draft = path + ".partial-" + record.token;
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  Descriptor file(::open(draft.c_str(), kFlags, 0666));
  if (file.fd < 0) throw unusable(target, std::strerror(errno));
  bool made = false;
  try {
    write_all(target, file.fd, lock_text(record));
    made = ::link(draft.c_str(), target.c_str()) == 0;
  } catch (...) {
    ::unlink(draft.c_str());
    throw;
  }
  const int error = errno;
  // Over a network an answer may be lost and the call done twice: then there is a second name all the same.
  struct stat info {};
  if (!made && ::fstat(file.fd, &info) == 0 && info.st_nlink > 1) made = true;
  ::unlink(draft.c_str());
  if (made) return std::exchange(file.fd, -1);
  if (error == EEXIST || error == ENOENT) return -1;  // ENOENT: who took it has removed the draft
  // Links are not to be had here.
  Descriptor direct(::open(target.c_str(), kFlags, 0666));
  if (direct.fd < 0 && errno == EEXIST) return -1;
  if (direct.fd < 0) throw unusable(target, std::strerror(errno));
  write_all(target, direct.fd, lock_text(record));
  return std::exchange(direct.fd, -1);
}

}  // namespace

bool LockWatch::still(const std::string& content, const std::string& token, double every, double seconds) {
  const auto now = Clock::now();
  const double passed = std::chrono::duration<double>(now - looked_).count();
  if (token != token_) {
    token_ = token;
    beating_ = false;
    still_ = 0;
  } else if (content != content_) {
    beating_ = true;
    still_ = 0;
  } else {
    still_ += std::min(passed, every);  // this process may have slept too
  }
  content_ = content;
  looked_ = now;
  return still_ > seconds;
}

// Beats from a thread of its own, which takes no signals.
class RunLock::Holding {
 public:
  Holding(std::string path, LockRecord record, int fd)
      : path_(std::move(path)), token_(record.token), record_(std::move(record)), fd_(fd) {
    const SignalBlocker here;
    try {
      thread_ = std::jthread([this](const std::stop_token& end) { beat_until(end); });
    } catch (const std::system_error&) {  // check() beats
    }
  }

  ~Holding() {
    thread_ = {};
    record_.held = false;
    beat();
    ::close(fd_);
  }

  void check() {
    if (!thread_.joinable()) beat();
    if (!lost_ && holds(path_, token_)) return;
    lost_ = true;
    const auto last = follow(path_);
    throw Error(Exit::taken_over, formatted("[run] {} {}; this process writes nothing more", path_,
                                            last ? "was taken over by " + described(*last) : "is gone"));
  }

  bool lost() const { return lost_; }

 private:
  // Into the file that was made, whatever its name is by now: a file of another holder is never written.
  void beat() {
    ++record_.heartbeat_count;
    written(fd_, lock_text(record_));  // one that fails is a beat missed
  }

  void beat_until(const std::stop_token& end) {
    std::unique_lock lock(mutex_);
    const auto pause = std::chrono::duration<double>(record_.heartbeat_seconds);
    while (!wake_.wait_for(lock, end, pause, [&] { return end.stop_requested(); })) {
      beat();
      try {
        if (!holds(path_, token_)) lost_ = true;
      } catch (const Error&) {  // check() says it
      }
    }
  }

  const std::string path_, token_;
  LockRecord record_;
  const int fd_;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

RunLock::RunLock(const std::string& path, LockWatch* watch) {
  LockRecord record = own_record();
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const auto last = follow(path);
    std::string target = path;
    if (last) {
      const double every = last->record ? last->record->heartbeat_seconds : record.heartbeat_seconds;
      const Holder holder = last->record ? look_for(*last->record) : Holder::unknown;
      if (watch != nullptr) {
        watch->there_ = holder == Holder::there;
        watch->proof_ = kMissedBeats * every;
      }
      const bool still = watch != nullptr && watch->still(last->content, last->token, every, kMissedBeats * every);
      const bool free = last->record ? !last->record->held : left_by_older(last->files.back(), last->content);
      if (!free && holder != Holder::gone && !still)
        throw Error(Exit::stopped, formatted("[run] {} is held by {}", path, described(*last)));
      target = next_of(path, last->token);
    }
    Descriptor made(make(path, target, record));
    if (!holds(path, record.token)) {
      // Another was first, or the chain went on from elsewhere meanwhile.
      if (made.fd >= 0 && target != path) ::unlink(target.c_str());
      record = own_record();
      continue;
    }
    if (made.fd < 0) made = Descriptor(::open(target.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));  // an answer was lost
    if (made.fd < 0) throw unusable(target, std::strerror(errno));
    if (target != path && ::rename(target.c_str(), path.c_str()) == 0)
      for (const auto& passed : last->files)
        if (passed != path) ::unlink(passed.c_str());
    holding_ = std::make_unique<Holding>(path, std::move(record), std::exchange(made.fd, -1));
    return;
  }
  throw Error(Exit::stopped, formatted("[run] {} is wanted by too many processes", path));
}

RunLock::~RunLock() = default;
RunLock::RunLock(RunLock&& other) noexcept = default;

void RunLock::check() const {
  holding_->check();
}

bool RunLock::lost() const {
  return holding_->lost();
}

std::optional<LockRecord> lock_record(const std::string& path) {
  try {
    const auto last = follow(path);
    return last ? last->record : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<bool> lock_is_held(const std::string& path) {
  const auto record = lock_record(path);
  if (!record || !record->held) return false;
  const Holder holder = look_for(*record);
  return holder == Holder::unknown ? std::nullopt : std::optional(holder == Holder::there);
}

RunLock wait_for_lock(const std::string& path, double seconds, const std::function<bool()>& stop) {
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (LockWatch watch;;) {
    try {
      return RunLock(path, &watch);
    } catch (const Error& error) {
      if (error.code() != Exit::stopped || (watch.alive() && Clock::now() >= until) || stop()) throw;
    }
    std::this_thread::sleep_for(kLook);
  }
}

int FencedFiles::rename(const std::string& from, const std::string& to) {
  lock_.check();
  const int done = files_.rename(from, to);
  if (done == 0 || errno != ENOENT) return done;
  lock_.check();
  errno = ENOENT;
  return done;
}

int FencedFiles::remove(const std::string& path) {
  if (path.find(".partial-") == std::string::npos) lock_.check();  // of what has no name yet nobody else knows
  return files_.remove(path);
}

}  // namespace sb
