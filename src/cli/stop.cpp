#include "cli/stop.h"

#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/stop_signals.h"

namespace sb::cli {
namespace {

constexpr int64_t kOneRequest = 2000;  // milliseconds in which signals count as one

static_assert(std::atomic<int64_t>::is_always_lock_free, "signal handlers use them");
std::atomic<int64_t> first_at = 0;  // milliseconds; 0: no signal yet
std::atomic<bool> requested = false, holding = false, end_wanted = false;
std::atomic<int> graceful = 0;  // number of existing GracefulStops
std::atomic<int> lifeline = -1;

int64_t milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return 1 + int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// Ends the program. `line` begins with a line break, which is printed only on terminals. Async-signal-safe. Prints
// nothing if writing would block.
[[noreturn]] void stop_at_once(std::string_view line) {
  remove_unfinished_files();
  if (::isatty(STDERR_FILENO) == 0) line.remove_prefix(std::min<size_t>(1, line.size()));
  pollfd asked{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&asked, 1, 0) > 0 && (asked.revents & POLLOUT) != 0)
    (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(static_cast<int>(Exit::stopped));
}

void ask_for_stop() {
  if (graceful == 0) stop_at_once("\n[stop] stopped; there was nothing to save\n");
  requested = true;
}

void on_signal(int) {
  const int saved = errno;
  const int64_t now = milliseconds();
  ask_for_stop();
  if (first_at == 0) {
    first_at = now;
  } else if (now - first_at >= kOneRequest) {
    if (!holding || end_wanted) stop_at_once("");
    end_wanted = true;
    first_at = now;
  }
  errno = saved;
}

bool holder_is_gone() {
  pollfd asked{lifeline, POLLIN, 0};
  return asked.fd >= 0 && ::poll(&asked, 1, 0) > 0;
}

void on_pipe(int) {
  const int saved = errno;
  if (holder_is_gone()) ask_for_stop();
  errno = saved;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_mask = stop_signals();
  sigaddset(&action.sa_mask, SIGIO);
  sigaddset(&action.sa_mask, SIGPIPE);  // stop_at_once() writes
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

void unblock(sigset_t signals, int also) {
  sigaddset(&signals, also);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace

void watch_for_stop() {
  for (const int signal : kStopSignals) {
    struct sigaction inherited {};
    ::sigaction(signal, nullptr, &inherited);
    if (signal != SIGHUP || inherited.sa_handler != SIG_IGN) handle(signal, on_signal);  // else nohup
  }
  ::signal(SIGCHLD, SIG_DFL);
  unblock(stop_signals(), SIGCHLD);
}

GracefulStop::GracefulStop() {
  ++graceful;
}

GracefulStop::~GracefulStop() {
  if (--graceful == 0 && requested) ++graceful;
}

bool stop_requested() {
  if (!requested && holder_is_gone()) requested = true;
  return requested;
}

void request_stop() {
  ask_for_stop();
}

void stop_when_closed(int pipe) {
  lifeline = pipe;
  handle(SIGIO, on_pipe);
  unblock(stop_signals(), SIGIO);
  // The system sends SIGIO when the pipe is closed. If it does not, stop_requested() notices.
  ::fcntl(pipe, F_SETOWN, ::getpid());
  ::fcntl(pipe, F_SETFL, ::fcntl(pipe, F_GETFL) | O_ASYNC);
  if (holder_is_gone()) ask_for_stop();
}

bool stop_within(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!stop_requested()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

void defer_exit(bool yes) {
  holding = yes;
  if (!yes && end_wanted) stop_at_once("");
}

}  // namespace sb::cli
