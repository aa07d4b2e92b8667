#include "jobs/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/text.h"

extern char** environ;

namespace sb {
namespace {

constexpr size_t kMaxOutput = size_t{64} << 20;  // output beyond this is dropped

struct ToolPipe {
  Descriptor read, write;
  ToolPipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw cannot_write("suite", std::string("cannot make a pipe: ") + std::strerror(errno));
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
};

// Appends available output; closes at the end of the stream.
void take(Descriptor& from, std::string& into) {
  char buffer[65536];
  const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got > 0) into.append(buffer, std::min(static_cast<size_t>(got), kMaxOutput - std::min(kMaxOutput, into.size())));
  if (got <= 0) from.reset();
}

// The environment without variables that make the tools show part of the queue or use another cluster: a job that is
// not seen would be submitted again.
std::vector<char*> environment() {
  std::vector<char*> out;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view line = *each;
    if (!line.starts_with("SQUEUE_") && !line.starts_with("SACCT_") && !line.starts_with("SBATCH_CLUSTERS="))
      out.push_back(*each);
  }
  out.push_back(nullptr);
  return out;
}

int start(const std::vector<std::string>& arguments, int out, int err, pid_t& pid) {
  std::vector<std::string> words = arguments;
  std::vector<char*> list;
  for (auto& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  sigset_t none, plain;
  sigemptyset(&none);
  sigemptyset(&plain);
  for (const int signal : {SIGCHLD, SIGPIPE, SIGXFSZ}) sigaddset(&plain, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &plain);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int failed = posix_spawnp(&pid, list[0], &actions, &attributes, list.data(), environment().data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

}  // namespace

ToolOutput run_tool(const std::vector<std::string>& arguments, double seconds) {
  ToolPipe out, err;
  ToolOutput result;
  pid_t pid = 0;
  if (const int failed = start(arguments, out.write.get(), err.write.get(), pid); failed != 0) {
    result.err = std::strerror(failed);
    return result;
  }
  result.found = true;
  out.write.reset();
  err.write.reset();
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (out.read.open() || err.read.open()) {
    if (std::chrono::steady_clock::now() >= until) {
      ::kill(pid, SIGKILL);
      result.err += "it took longer than " + std::to_string(static_cast<int>(seconds)) + " s";
      break;
    }
    pollfd fds[2] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
    if (::poll(fds, 2, 200) <= 0) continue;
    if (fds[0].revents != 0) take(out.read, result.out);
    if (fds[1].revents != 0) take(err.read, result.err);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string complaint_of(const ToolOutput& output) {
  const std::string line = last_line(output.err);
  return line.empty() ? "exit code " + std::to_string(output.code) : printable(line, 300);
}

std::string complaint_of(const ToolOutput& output, const std::string& tool) {
  const std::string line = complaint_of(output), name = tool + ": ";
  return line.starts_with(name) ? line : name + line;
}

std::string shell_quoted(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::strchr("_-./,:=%+@", c) != nullptr;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  return "'" + replace_all(text, "'", "'\\''") + "'";
}

std::string shell_line(const std::vector<std::string>& arguments) {
  std::string out;
  for (const auto& each : arguments) out += (out.empty() ? "" : " ") + shell_quoted(each);
  return out;
}

}  // namespace sb
