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
#include "base/file.h"
#include "cli/stop.h"

namespace sb::cli {
namespace {

[[noreturn]] void say_and_end(std::string_view line, Exit code = Exit::bad_input) {
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) code = Exit::cannot_write;
  ::_exit(static_cast<int>(code));
}

// Terminate handler, e.g. for bad_alloc in a destructor: prints a line and exits with a code instead of SIGABRT.
[[noreturn]] void end_at_once() {
  Exit code = Exit::check_failed;
  std::string_view line = "[internal] unexpected error\n";
  try {
    if (const auto current = std::current_exception()) std::rethrow_exception(current);
  } catch (const std::bad_alloc&) {
    code = Exit::bad_input;
    line = "[memory] not enough memory for this command\n";
  } catch (const std::system_error&) {
    code = Exit::bad_input;
    line = "[memory] cannot start a thread\n";
  } catch (...) {
  }
  say_and_end(line, code);
}

// Libraries are initialised before main(). If the address space is limited, some of them loop forever or abort.
// before_libraries() runs before any of them.
constexpr int kSecondsToLoad = 5;  // CPU seconds; normally less than one

void cannot_load(int) {
  say_and_end("[memory] cannot load the libraries within the memory limit; raise it (ulimit -v, -d)\n");
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

// Some libraries use memory that they failed to allocate. If a limit is set, this is the likely cause of SIGSEGV.
void memory_not_had(int) {
  remove_unfinished_files();
  say_and_end("[memory] a library could not allocate memory within the limit; raise it (ulimit -v, -d)\n");
}

void watch_memory() {
  alignas(16) static char stack[16384];  // the main thread's stack may be the one that cannot grow
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof(stack);
  ::sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = memory_not_had;
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
}

constexpr rlim_t kLeastStack = rlim_t{1} << 20;

void refuse_small_stack() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kLeastStack)
    say_and_end("[memory] the stack limit is too low, expected 1024 kB or more (ulimit -s)\n");
}

// Grows the main thread's stack before other memory is allocated. Otherwise a stack that cannot grow later would end
// the process with SIGSEGV. Not inlined: its frame is larger than a stack limit that is rejected.
__attribute__((noinline)) void grow_stack() {
  volatile char pages[kLeastStack / 2];
  for (size_t i = 0; i < sizeof(pages); i += 4096) pages[i] = 0;
}

void before_libraries() {
  watch_for_stop();
  std::set_terminate(end_at_once);
  if (limited(RLIMIT_AS) || limited(RLIMIT_DATA)) {
    watch_memory();
    watch_loading(kSecondsToLoad, cannot_load);
  }
  refuse_small_stack();
  grow_stack();
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
  // Otherwise a file opened later would get the number of a closed stream, and output would go into it. Read-only,
  // so that printing to a closed stream still fails.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF && ::open("/dev/null", O_RDONLY) != fd) return;
}

}  // namespace sb::cli
