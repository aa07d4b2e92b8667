#include "cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace sb::cli {

namespace {

// Writes all of `text`; returns false on error. Retries after signals, and waits if a non-blocking descriptor is
// full.
bool offer(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EAGAIN) {
      pollfd asked{fd, POLLOUT, 0};
      ::poll(&asked, 1, -1);
    } else if (wrote < 0 && errno != EINTR) {
      return false;
    } else if (wrote > 0) {
      text.remove_prefix(static_cast<size_t>(wrote));
    }
  }
  return true;
}

constexpr size_t kBuffer = size_t{1} << 16;
std::string& waiting() {
  static std::string text;
  return text;
}

}  // namespace

void print(std::string_view text) {
  static const bool watched = ::isatty(STDOUT_FILENO) == 1;
  waiting() += text;
  if (watched || waiting().size() >= kBuffer) finish_output();
}

void finish_output() {
  const std::string text = std::exchange(waiting(), {});
  if (!offer(STDOUT_FILENO, text)) throw cannot_write("stdout", std::strerror(errno));
}

void write_error(std::string_view text) {
  offer(STDERR_FILENO, text);
}

void complain(std::string_view line) {
  try {
    // A single write, so that lines of several processes are not mixed.
    write_error(one_line(line) + "\n");
  } catch (const std::bad_alloc&) {
    write_error("[memory] not enough memory to print the error\n");
  }
}

void complain_of_all(std::string_view list) {
  while (!list.empty()) {
    const size_t end = std::min(list.find("\n["), list.size());
    complain(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
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

void deliver_both(const std::string& destination, std::string_view json, std::string_view text) {
  if (!destination.empty()) deliver(destination, json);
  if (destination != "-") print(text);
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
