#include "jobs/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/stop_signals.h"

extern char** environ;

namespace sb {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPollMilliseconds = 100;
constexpr size_t kKeptErrors = 4096, kLongestLine = 65536;
const std::string kGpusVariable = "CUDA_VISIBLE_DEVICES=";
constexpr int kFirstOwn = 10;  // first descriptor number used here; lower ones are for child processes

Error failure(const std::string& doing, int error) {
  rlimit files{};
  if (error != EMFILE || ::getrlimit(RLIMIT_NOFILE, &files) != 0)
    return cannot_write("suite", "cannot " + doing + ": " + std::strerror(error));
  return cannot_write("suite", "cannot " + doing + ": the limit of open files is too low, " +
                                   std::to_string(files.rlim_cur) + "; raise it with `ulimit -n`");
}

// Moves a descriptor above the standard ones, which may have been closed when this program started.
Descriptor lifted(Descriptor low, const std::string& what) {
  if (!low.open()) throw failure("make " + what, errno);
  Descriptor high(::fcntl(low.get(), F_DUPFD_CLOEXEC, kFirstOwn));
  if (!high.open()) throw failure("make " + what, errno == EINVAL ? EMFILE : errno);  // the limit is below kFirstOwn
  return high;
}

struct Pipe {
  Descriptor read, write;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw failure("make a pipe", errno);
    Descriptor first(ends[0]), second(ends[1]);
    read = lifted(std::move(first), "a pipe");
    write = lifted(std::move(second), "a pipe");
  }
};

Descriptor file_of(const std::string& content) {
  Descriptor file = lifted(Descriptor(::memfd_create("run", MFD_CLOEXEC)), "a file in memory");
  for (size_t done = 0; done < content.size();) {
    const ssize_t wrote = ::write(file.get(), content.data() + done, content.size() - done);
    if (wrote < 0 && errno != EINTR) throw failure("write a file in memory", errno);
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

struct Child {
  size_t work = 0;
  std::optional<size_t> gpu;
  pid_t pid = 0;
  Clock::time_point began = Clock::now();
  Descriptor out, err, lifeline;
  std::string line, errors;
};

// Starts a process of this program. Stop signals stay pending until it has its handlers; no signal is ignored in it.
pid_t spawn(std::vector<std::string> arguments, const std::vector<int>& descriptors, const std::string& gpu) {
  std::string program = "/proc/self/exe";
  std::vector<char*> list = {program.data()};
  for (auto& argument : arguments) list.push_back(argument.data());
  list.push_back(nullptr);
  std::string seen = kGpusVariable + gpu;
  std::vector<char*> environment;
  for (char** at = environ; *at != nullptr; ++at)
    if (gpu.empty() || !std::string_view(*at).starts_with(kGpusVariable)) environment.push_back(*at);
  if (!gpu.empty()) environment.push_back(seen.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (size_t i = 0; i < descriptors.size(); ++i)
    posix_spawn_file_actions_adddup2(&actions, descriptors[i], static_cast<int>(i));
  const sigset_t blocked = stop_signals();
  sigset_t plain;
  sigemptyset(&plain);
  for (const int signal : {SIGCHLD, SIGPIPE, SIGTSTP}) sigaddset(&plain, signal);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setsigdefault(&attributes, &plain);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, program.c_str(), &actions, &attributes, list.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw failure("start a process", failed);
  return pid;
}

static_assert(kLifeline == 3 && kSecondInput == 4, "the order of spawn()'s descriptors");

Child start(size_t index, const Work& work, const std::string& gpu) {
  Child child;
  child.work = index;
  Pipe out, err, life;
  const Descriptor input = file_of(work.input), second = file_of(work.second_input);
  child.pid =
      spawn(work.arguments, {input.get(), out.write.get(), err.write.get(), life.read.get(), second.get()}, gpu);
  child.out = std::move(out.read);
  child.err = std::move(err.read);
  child.lifeline = std::move(life.write);
  return child;
}

// Closes at the end of the stream.
void drain(Descriptor& from, std::string& into) {
  char buffer[4096];
  const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got > 0) into.append(buffer, static_cast<size_t>(got));
  if (got <= 0) from.reset();
}

std::vector<std::string> take_lines(std::string& text) {
  std::vector<std::string> lines;
  size_t end = 0;
  while ((end = text.find('\n')) != std::string::npos) {
    lines.push_back(text.substr(0, end));
    text.erase(0, end + 1);
  }
  if (text.size() > kLongestLine) text.clear();
  return lines;
}

std::optional<WorkDone> reap(Child& child) {
  if (child.out.open() || child.err.open()) return std::nullopt;
  int status = 0;
  pid_t got = 0;
  while ((got = ::waitpid(child.pid, &status, 0)) < 0 && errno == EINTR) {
  }
  WorkDone done;
  done.seconds = std::chrono::duration<double>(Clock::now() - child.began).count();
  done.errors = std::move(child.errors);
  if (got == child.pid) {
    done.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  } else {  // its exit status was collected elsewhere
    done.exit_code = static_cast<int>(Exit::check_failed);
    done.errors += "[suite] the exit code of process " + std::to_string(child.pid) + " was lost\n";
  }
  return done;
}

// Ctrl-Z suspends only this process group, so this process suspends and continues its children.
volatile std::sig_atomic_t suspend_asked = 0;
class Suspension {
 public:
  Suspension() {
    struct sigaction action {};
    action.sa_handler = [](int) { suspend_asked = 1; };
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGTSTP, nullptr, &before_);
    if (before_.sa_handler == SIG_DFL) ::sigaction(SIGTSTP, &action, nullptr);
  }
  ~Suspension() { ::sigaction(SIGTSTP, &before_, nullptr); }
  static void obey(const std::vector<Child>& children) {
    if (std::exchange(suspend_asked, 0) == 0) return;
    for (const Child& c : children) ::kill(c.pid, SIGSTOP);
    ::raise(SIGSTOP);
    for (const Child& c : children) ::kill(c.pid, SIGCONT);
  }

 private:
  struct sigaction before_ {};
};

class Crew {
 public:
  Crew(const std::vector<Work>& works, const Workers& workers) : works_(works), workers_(workers) {
    for (size_t i = 0; i < works.size(); ++i) queue_.push_back(i);
  }

  void work() {
    try {
      while (step()) {
      }
    } catch (...) {
      ask_to_end();
      while (!children_.empty()) {
        listen(false);
        for (size_t i = children_.size(); i-- > 0;)
          if (reap(children_[i])) children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      }
      throw;
    }
  }

 private:
  bool step() {
    Suspension::obey(children_);
    if (!stopping_ && workers_.stop && workers_.stop()) {
      ask_to_end();
      if (workers_.stopping) workers_.stopping();
    }
    while (!stopping_ && !queue_.empty() && children_.size() < static_cast<size_t>(workers_.jobs)) {
      const auto place = workers_.pick ? workers_.pick(queue_) : std::optional<size_t>(0);
      if (!place) break;
      const auto gpu = idlest_gpu();
      const size_t next = queue_[*place];
      children_.push_back(start(next, works_[next], gpu ? workers_.gpus[*gpu] : ""));
      children_.back().gpu = gpu;
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(*place));
      if (workers_.started) workers_.started(next);
    }
    if (children_.empty()) return false;
    listen(true);
    for (size_t i = 0; i < children_.size();) {
      const auto done = reap(children_[i]);
      if (!done) {
        ++i;
        continue;
      }
      const size_t work = children_[i].work;
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      if (workers_.finished && workers_.finished(work, *done)) queue_.push_back(work);
    }
    if (workers_.tick) workers_.tick();
    return true;
  }

  // The GPU with the fewest processes, the first of equals.
  std::optional<size_t> idlest_gpu() const {
    std::vector<size_t> load(workers_.gpus.size(), 0);
    for (const Child& c : children_)
      if (c.gpu) ++load[*c.gpu];
    const auto least = std::min_element(load.begin(), load.end());
    return least == load.end() ? std::nullopt : std::optional(static_cast<size_t>(least - load.begin()));
  }

  void ask_to_end() {
    stopping_ = true;
    for (Child& c : children_) c.lifeline.reset();
  }

  void listen(bool hand_out) {
    std::vector<pollfd> fds;
    for (const Child& c : children_) {
      fds.push_back({c.out.get(), POLLIN, 0});
      fds.push_back({c.err.get(), POLLIN, 0});
    }
    if (::poll(fds.data(), fds.size(), kPollMilliseconds) <= 0) return;
    for (size_t i = 0; i < children_.size(); ++i) {
      Child& c = children_[i];
      if (fds[2 * i].revents != 0) {
        drain(c.out, c.line);
        for (const auto& line : take_lines(c.line))
          if (hand_out && workers_.said) workers_.said(c.work, line);
      }
      if (fds[2 * i + 1].revents != 0) {
        drain(c.err, c.errors);
        if (c.errors.size() > kKeptErrors) c.errors.erase(0, c.errors.size() - kKeptErrors);
      }
    }
  }

  const std::vector<Work>& works_;
  const Workers& workers_;
  std::deque<size_t> queue_;
  std::vector<Child> children_;
  bool stopping_ = false;
};

}  // namespace

void work_through(const std::vector<Work>& works, const Workers& workers) {
  const Suspension suspension;
  Crew(works, workers).work();
}

}  // namespace sb
