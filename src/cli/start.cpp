#include "cli/start.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace sb::cli {

void settle_process() {
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
