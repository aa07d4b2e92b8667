#include "cli/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include "base/error.h"

extern char** environ;

namespace sb::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPollMilliseconds = 100;
constexpr size_t kKeptErrors = 4096;

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw cannot_write("suite", std::string("cannot make a pipe: ") + std::strerror(errno));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close_write();
    if (read >= 0) close(read);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write() {
    if (write >= 0) close(write);
    write = -1;
  }
};

struct Child {
  size_t work = 0;
  pid_t pid = 0;
  Clock::time_point began = Clock::now();
  std::unique_ptr<Pipe> out, err;
  std::string line, errors;
  bool out_open = true, err_open = true;
};

Child start(size_t index, const Work& work) {
  Child child;
  child.work = index;
  child.out = std::make_unique<Pipe>();
  child.err = std::make_unique<Pipe>();
  std::vector<char*> arguments;
  std::string program = "/proc/self/exe";
  arguments.push_back(program.data());
  std::vector<std::string> copies = work.arguments;
  for (auto& argument : copies) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child.out->write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child.err->write, STDERR_FILENO);
  const int failed = posix_spawn(&child.pid, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw cannot_write("suite", std::string("cannot start a process: ") + std::strerror(failed));
  child.out->close_write();
  child.err->close_write();
  return child;
}

// False at the end of the stream.
bool drain(int fd, std::string& into) {
  char buffer[4096];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  into.append(buffer, static_cast<size_t>(got));
  return got > 0;
}

void hand_out_lines(Child& child, const Workers& workers) {
  size_t end = 0;
  while ((end = child.line.find('\n')) != std::string::npos) {
    if (workers.said) workers.said(child.work, child.line.substr(0, end));
    child.line.erase(0, end + 1);
  }
}

void listen(std::vector<Child>& children, const Workers& workers) {
  std::vector<pollfd> fds;
  for (const Child& c : children) {
    fds.push_back({c.out_open ? c.out->read : -1, POLLIN, 0});
    fds.push_back({c.err_open ? c.err->read : -1, POLLIN, 0});
  }
  poll(fds.data(), fds.size(), kPollMilliseconds);
  for (size_t i = 0; i < children.size(); ++i) {
    Child& c = children[i];
    if (fds[2 * i].revents != 0) {
      c.out_open = drain(c.out->read, c.line);
      hand_out_lines(c, workers);
    }
    if (fds[2 * i + 1].revents != 0) {
      c.err_open = drain(c.err->read, c.errors);
      if (c.errors.size() > kKeptErrors) c.errors.erase(0, c.errors.size() - kKeptErrors);
    }
  }
}

std::optional<WorkDone> reap(Child& child) {
  if (child.out_open || child.err_open) return std::nullopt;
  int status = 0;
  if (waitpid(child.pid, &status, 0) != child.pid) return std::nullopt;
  WorkDone done;
  done.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  done.seconds = std::chrono::duration<double>(Clock::now() - child.began).count();
  done.errors = std::move(child.errors);
  return done;
}

}  // namespace

void work_through(const std::vector<Work>& works, const Workers& workers) {
  std::vector<Child> children;
  size_t next = 0;
  bool stopping = false;
  while (true) {
    if (!stopping && workers.stop && workers.stop()) {
      stopping = true;
      for (const Child& c : children) kill(c.pid, SIGTERM);
    }
    while (!stopping && next < works.size() && children.size() < static_cast<size_t>(workers.jobs)) {
      children.push_back(start(next, works[next]));
      if (workers.started) workers.started(next);
      ++next;
    }
    if (children.empty()) return;
    listen(children, workers);
    for (size_t i = 0; i < children.size();) {
      if (const auto done = reap(children[i])) {
        const size_t work = children[i].work;
        children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
        if (workers.finished) workers.finished(work, *done);
      } else {
        ++i;
      }
    }
    if (workers.tick) workers.tick();
  }
}

}  // namespace sb::cli
