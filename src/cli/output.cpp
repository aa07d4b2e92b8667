#include "cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace sb::cli {

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw cannot_write("stdout", std::strerror(errno));
  }
}

void finish_output() {
  if (std::fflush(stdout) != 0) throw cannot_write("stdout", std::strerror(errno));
}

void complain(std::string_view line) {
  try {
    // In one write: lines of several processes stay whole.
    const std::string text = one_line(line) + "\n";
    std::fwrite(text.data(), 1, text.size(), stderr);
  } catch (const std::bad_alloc&) {
    std::fputs("[memory] not even enough to say what went wrong\n", stderr);
  }
}

void relay(std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    complain(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

void deliver(const std::string& destination, std::string_view content) {
  if (destination == "-") {
    print(content);
    finish_output();
  } else {
    write_file_atomically(destination, content);
  }
}

Palette::Palette(const std::string& mode) {
  const char* refused = std::getenv("NO_COLOR");
  const bool wanted = ::isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0');
  on_ = mode == "always" || (mode == "auto" && wanted);
}

std::string Palette::paint(std::string_view code, std::string_view text) const {
  if (!on_) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string Palette::symbol(int symbol, std::string_view text) const {
  if (symbol == 0) return paint("1;7", text);
  static constexpr std::array kHues = {203, 209, 215, 221, 191, 155, 119, 84, 86, 81, 75, 69, 105, 141, 177, 207};
  return paint("38;5;" + std::to_string(kHues[static_cast<size_t>(symbol - 1) % kHues.size()]), text);
}

}  // namespace sb::cli
