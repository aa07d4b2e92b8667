// Runs of a suite in processes of their own, a few at a time.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace sb::cli {

struct Work {
  std::vector<std::string> arguments;  // of this same program
  std::string name;                    // for people
};

struct WorkDone {
  int exit_code = 0;  // 128 + signal where one ended it
  double seconds = 0;
  std::string errors;  // what it wrote to standard error
};

struct Workers {
  int jobs = 1;
  std::function<void(size_t work)> started;
  std::function<void(size_t work, const std::string& line)> said;  // a line of its standard output
  std::function<void(size_t work, const WorkDone&)> finished;
  std::function<bool()> stop;  // true: running ones are asked to end (SIGTERM), no more are started
  std::function<void()> tick;  // several times a second
};

void work_through(const std::vector<Work>& works, const Workers& workers);

}  // namespace sb::cli
