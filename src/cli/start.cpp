#include "cli/start.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "base/error.h"

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

}  // namespace

void settle_process() {
  std::set_terminate(end_at_once);
  // A file opened later would take the number of a closed stream, and what is printed would go into it. Read-only, so
  // that printing to what was closed still fails.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF && ::open("/dev/null", O_RDONLY) != fd) return;
  // Beyond the limit of a file's size a write then fails with EFBIG.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &ignore, nullptr);
}

}  // namespace sb::cli
