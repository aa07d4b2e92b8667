#include "cli/standard_error.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>

#include "cli/output.h"

namespace sb::cli {
namespace {

std::pair<int, int> terminal_size() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {80, 24};
  return {size.ws_col, size.ws_row};
}

}  // namespace

Console standard_error() {
  const auto began = std::chrono::steady_clock::now();
  return {::isatty(STDERR_FILENO) == 1,
          [began] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); },
          terminal_size, [](std::string_view text) { write_error(text); }};
}

}  // namespace sb::cli
