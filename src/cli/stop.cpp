#include "cli/stop.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace sb::cli {
namespace {

constexpr int64_t kOneRequest = 2000;  // milliseconds in which signals count as one
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR2};

static_assert(std::atomic<int64_t>::is_always_lock_free, "signal handlers use them");
std::atomic<int64_t> first_at = 0;  // milliseconds; 0: no signal yet
std::atomic<bool> requested = false, holding = false, end_wanted = false;
std::atomic<int> lifeline = -1;

int64_t milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return 1 + int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void on_signal(int) {
  const int saved = errno;
  const int64_t now = milliseconds();
  requested = true;
  if (first_at == 0) {
    first_at = now;
  } else if (now - first_at >= kOneRequest) {
    if (!holding || end_wanted) ::_exit(static_cast<int>(Exit::stopped));
    end_wanted = true;
    first_at = now;
  }
  errno = saved;
}

}  // namespace

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  return set;
}

void watch_for_stop() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_mask = stop_signals();
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) {
    struct sigaction inherited {};
    ::sigaction(signal, nullptr, &inherited);
    if (signal == SIGHUP && inherited.sa_handler == SIG_IGN) continue;  // nohup
    ::sigaction(signal, &action, nullptr);
  }
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t wanted = stop_signals();
  sigaddset(&wanted, SIGCHLD);
  ::pthread_sigmask(SIG_UNBLOCK, &wanted, nullptr);
}

bool stop_requested() {
  if (requested) return true;
  if (const int fd = lifeline; fd >= 0) {
    pollfd asked{fd, POLLIN, 0};
    if (::poll(&asked, 1, 0) > 0) requested = true;
  }
  return requested;
}

void request_stop() {
  requested = true;
}

void stop_when_closed(int pipe) {
  lifeline = pipe;
}

void end_if_stopped(const std::string& where) {
  if (stop_requested()) throw Error(Exit::stopped, "[" + where + "] stopped, nothing was written");
}

bool stop_within(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!stop_requested()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

void hold_end(bool yes) {
  holding = yes;
  if (!yes && end_wanted) ::_exit(static_cast<int>(Exit::stopped));
}

}  // namespace sb::cli
