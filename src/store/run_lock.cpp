#include "store/run_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "base/signal_blocker.h"
#include "base/text.h"

namespace sb {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLongestLock = 4096;  // bytes
constexpr int kMaxFollowed = 1000;     // maximum files of a chain; a longer one is not ours
constexpr int kStaleTries = 5;         // retries if another machine replaces the file while it is opened
constexpr int kMaxAttempts = 1000;
constexpr auto kLook = std::chrono::milliseconds(20);

Error unusable(const std::string& path, const std::string& why) {
  return cannot_write("run", formatted("cannot write {}: {}", path, why));
}

// Opens the file by name each time, since network file systems then fetch it anew; nullopt if it does not exist.
std::optional<std::string> read_lock(const std::string& path) {
  for (int tries = 1;; ++tries) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    int error = !file.open() ? errno : 0;
    struct stat info {};
    if (error == 0 && ::fstat(file.get(), &info) != 0) error = errno;
    if (error == 0 && !S_ISREG(info.st_mode)) throw unusable(path, "it is not a file");
    std::string content(kLongestLock, '\0');
    const ssize_t size = error == 0 ? ::pread(file.get(), content.data(), content.size(), 0) : 0;
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

// Token of an unreadable record, made from its file name and content.
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

// Whether the token holds the lock. Reads in this order, since a new owner first follows the token, then renames.
bool holds(const std::string& path, const std::string& token) {
  if (read_lock(next_of(path, token))) return false;
  const auto last = follow(path, token);
  return last && last->token == token;
}

std::string described(const Last& last) {
  return last.record ? holder_text(*last.record) : "another process";
}

// Writes the text and makes it visible to other machines: closing any descriptor of the file flushes it on a network
// file system. Unlike fsync, this does not wait for a local disk.
bool written(int fd, const std::string& text) {
  const bool whole = ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return whole && copy >= 0 && ::close(copy) == 0;
}

void write_all(const std::string& path, int fd, const std::string& text) {
  if (!written(fd, text)) throw unusable(path, std::strerror(errno));
}

// Creates the record as file `target` of the chain unless it exists. Returns the descriptor, or -1.
int make(const std::string& path, const std::string& target, const LockRecord& record) {
  const std::string draft = path + ".partial-" + record.token;
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  Descriptor file(::open(draft.c_str(), kFlags, 0666));
  if (!file.open()) throw unusable(target, std::strerror(errno));
  bool made = false;
  try {
    write_all(target, file.get(), lock_text(record));
    made = ::link(draft.c_str(), target.c_str()) == 0;
  } catch (...) {
    ::unlink(draft.c_str());
    throw;
  }
  const int error = errno;
  // Over a network, a reply may be lost and link() repeated: then the link count is 2 although the call failed.
  struct stat info {};
  if (!made && ::fstat(file.get(), &info) == 0 && info.st_nlink > 1) made = true;
  ::unlink(draft.c_str());
  if (made) return file.release();
  if (error == EEXIST || error == ENOENT) return -1;  // ENOENT: a new owner has removed the draft
  // This file system has no hard links.
  Descriptor direct(::open(target.c_str(), kFlags, 0666));
  if (!direct.open() && errno == EEXIST) return -1;
  if (!direct.open()) throw unusable(target, std::strerror(errno));
  write_all(target, direct.get(), lock_text(record));
  return direct.release();
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
    still_ += std::min(passed, every);  // this process may have been suspended, too
  }
  content_ = content;
  looked_ = now;
  return still_ > seconds;
}

// Sends heartbeats from its own thread, which blocks signals.
class RunLock::Holding {
 public:
  Holding(std::string path, LockRecord record, int fd)
      : path_(std::move(path)), token_(record.token), record_(std::move(record)), fd_(fd) {
    const SignalBlocker here;
    try {
      thread_ = std::jthread([this](const std::stop_token& end) { beat_until(end); });
    } catch (const std::system_error&) {  // no thread: check() sends heartbeats
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
  // Writes through the descriptor, whatever the name of the file is now, so it never writes to a file of another owner.
  void beat() {
    ++record_.heartbeat_count;
    written(fd_, lock_text(record_));  // a failed write counts as a missed heartbeat
  }

  void beat_until(const std::stop_token& end) {
    std::unique_lock lock(mutex_);
    const auto pause = std::chrono::duration<double>(record_.heartbeat_seconds);
    while (!wake_.wait_for(lock, end, pause, [&] { return end.stop_requested(); })) {
      beat();
      try {
        if (!holds(path_, token_)) lost_ = true;
      } catch (const Error&) {  // check() will report it
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
      const bool free = last->record && !last->record->held;
      if (!free && holder != Holder::gone && !still)
        throw Error(Exit::stopped, formatted("[run] {} is held by {}", path, described(*last)));
      target = next_of(path, last->token);
    }
    Descriptor made(make(path, target, record));
    if (!holds(path, record.token)) {
      // Another process was first, or the chain was continued elsewhere.
      if (made.open() && target != path) ::unlink(target.c_str());
      record = own_record();
      continue;
    }
    if (!made.open()) made = Descriptor(::open(target.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));  // lost reply
    if (!made.open()) throw unusable(target, std::strerror(errno));
    if (target != path && ::rename(target.c_str(), path.c_str()) == 0)
      for (const auto& passed : last->files)
        if (passed != path) ::unlink(passed.c_str());
    holding_ = std::make_unique<Holding>(path, std::move(record), made.release());
    return;
  }
  throw Error(Exit::stopped, formatted("[run] {}: too many processes compete for the lock", path));
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
  if (path.find(".partial-") == std::string::npos) lock_.check();  // unpublished files are known only to this process
  return files_.remove(path);
}

}  // namespace sb
