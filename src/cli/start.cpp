#include "cli/start.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "cli/stop.h"

namespace sb::cli {
namespace {

// An exception where none may pass, e.g. no memory while something is being freed: a line and a code, not SIGABRT.
[[noreturn]] void end_at_once() {
  Exit code = Exit::check_failed;
  std::string_view line = "[internal] an error where none was expected\n";
  try {
    if (const auto current = std::current_exception()) std::rethrow_exception(current);
  } catch (const std::bad_alloc&) {
    code = Exit::bad_input;
    line = "[memory] not enough for what was asked\n";
  } catch (const std::system_error&) {
    code = Exit::bad_input;
    line = "[memory] cannot start a thread\n";
  } catch (...) {
  }
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) code = Exit::cannot_write;
  ::_exit(static_cast<int>(code));
}

// Libraries are initialised before main(), which takes a while, and some spin for ever or abort where the address space
// is limited. before_libraries() runs before any of them.
constexpr int kSecondsToLoad = 5;  // of the processor; it takes less than one

void cannot_load(int) {
  constexpr std::string_view line =
      "[memory] the libraries cannot be loaded within this limit of memory, expected a larger one (ulimit -v, -d)\n";
  ::_exit(::write(STDERR_FILENO, line.data(), line.size()) < 0 ? 74 : 2);
}

bool limited(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

void watch_loading(int seconds, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(SIGPROF, &action, nullptr);
  ::sigaction(SIGABRT, &action, nullptr);
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

void before_libraries() {
  watch_for_stop();
  std::set_terminate(end_at_once);
  if (limited(RLIMIT_AS) || limited(RLIMIT_DATA)) watch_loading(kSecondsToLoad, cannot_load);
}

__attribute__((section(".preinit_array"), used)) void (*const kBeforeLibraries)() = before_libraries;

}  // namespace

void settle_process() {
  watch_loading(0, SIG_DFL);
  std::set_terminate(end_at_once);
  // Beyond the limit of a file's size a write then fails with EFBIG.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &ignore, nullptr);
  // A file opened later would take the number of a closed stream, and what is printed would go into it. Read-only, so
  // that printing to what was closed still fails.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF && ::open("/dev/null", O_RDONLY) != fd) return;
}

}  // namespace sb::cli
