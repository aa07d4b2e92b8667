// Runs the program as a user does.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/expect.h"
#include "base/temporary_folder.h"

namespace sb::test {

// SELECTIVBENCH_TESTED names another build of it.
inline const char* program() {
  const char* named = std::getenv("SELECTIVBENCH_TESTED");
  return named == nullptr ? SB_PROGRAM : named;
}

struct Outcome {
  int code = 0;  // exit code, -1 if a signal ended it
  std::string out, err;
};

// Whether it ended with this code, and all parts stand in its errors.
template <class... Parts>
testing::AssertionResult exits(const Outcome& outcome, int code, const Parts&... parts) {
  if (outcome.code != code)
    return testing::AssertionFailure() << "exit code " << outcome.code << ": " << outcome.out << outcome.err;
  return has(outcome.err, parts...);
}

inline std::string whole_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline double processor_seconds(pid_t pid) {
  std::istringstream stat(whole_file("/proc/" + std::to_string(pid) + "/stat"));
  std::string field;
  for (int i = 0; i < 13; ++i) stat >> field;
  double user = 0, system = 0;
  stat >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// A started program; its output goes to files of a folder of its own.
class Started {
 public:
  // `before` runs in the new process just before it becomes the program.
  explicit Started(const std::vector<std::string>& arguments, const std::function<void()>& before = {}) {
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) {
      redirect("out", 1);
      redirect("err", 2);
      ::unsetenv("NO_COLOR");
      ::setenv("ASAN_OPTIONS", "detect_leaks=0", 0);  // the search at exit takes seconds a run; in-process tests do it
      std::vector<char*> argv = {const_cast<char*>(program())};
      for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      if (before) before();
      ::execv(program(), argv.data());
      ::_exit(127);
    }
  }
  // A test that gave up leaves nobody at work.
  ~Started() {
    if (ended_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  // Until the launcher blocks SIGINT or the program handles it.
  void wait_until_it_watches_for_signals() const {
    for (int tries = 0; tries < 600000; ++tries) {
      const std::string status = whole_file("/proc/" + std::to_string(pid_) + "/status");
      for (const char* set : {"SigBlk:", "SigCgt:"}) {
        const size_t at = status.find(set);
        if (at != std::string::npos && (std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGINT - 1) & 1) != 0)
          return;
      }
      ::usleep(1'000);
    }
  }
  // Until it has worked for so long; false where it has ended before.
  bool wait_until_it_has_worked_for(double seconds) const {
    for (int tries = 0; tries < 30000; ++tries) {
      if (processor_seconds(pid_) > seconds) return true;
      siginfo_t ended{};
      ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
      if (ended.si_pid == pid_) return false;
      ::usleep(10'000);
    }
    return false;
  }
  void signal(int number) const { ::kill(pid_, number); }
  pid_t pid() const { return pid_; }
  std::string output_so_far() const { return whole_file(folder_.file("out")); }
  std::string errors_so_far() const { return whole_file(folder_.file("err")); }
  Outcome wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ended_ = true;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, whole_file(folder_.file("out")),
            whole_file(folder_.file("err"))};
  }

 private:
  void redirect(const char* name, int to) const {
    const int fd = ::open(folder_.file(name).c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    ::dup2(fd, to);
  }
  TemporaryFolder folder_;
  pid_t pid_;
  bool ended_ = false;
};

inline Outcome run(const std::vector<std::string>& arguments) {
  return Started(arguments).wait();
}

inline std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A grammar that takes a minute to build.
inline const std::vector<std::string> kLarge = {"--vocab", "256", "--ambiguities", "255", "--depth", "255"};

// A grammar of ten states.
inline const std::vector<std::string> kSmall = {"--vocab", "6", "--ambiguities", "2", "--depth", "3"};

// Arguments that hold no spaces, as one line.
inline std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()};
}

}  // namespace sb::test
