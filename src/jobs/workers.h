// Runs the runs of a suite in separate processes, a few at a time.
#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sb {

// Descriptor of the reading end of a pipe in a child process. The child ends when the other end closes: on request, or
// because this process is gone for any reason.
constexpr int kLifeline = 3;
constexpr int kSecondInput = 4;

struct Work {
  std::vector<std::string> arguments;  // of this program
  std::string input;                   // content of its standard input, an unnamed file
  std::string second_input;            // content of another file, descriptor kSecondInput
  std::string name;                    // for people
};

struct WorkDone {
  int exit_code = 0;  // 128 + signal if a signal ended it
  double seconds = 0;
  std::string errors;  // end of its standard error
};

struct Workers {
  int jobs = 1;
  // Chooses the work to start next from `waiting` (indices of works, in order); nullopt: none now. Unset: the first.
  std::function<std::optional<size_t>(const std::deque<size_t>& waiting)> pick;
  // Names of GPUs. Each process sees only the GPU with the fewest other processes, so `jobs` are spread evenly. Empty:
  // all processes see all GPUs.
  std::vector<std::string> gpus;
  std::function<void(size_t work)> started;
  std::function<void(size_t work, const std::string& line)> said;  // a line of the standard output of the process
  // Returns true to repeat the work after all others.
  std::function<bool(size_t work, const WorkDone&)> finished;
  std::function<bool()> stop;      // true: asks running processes to end and starts no more
  std::function<void()> stopping;  // called once, when processes are asked to end
  std::function<void()> tick;      // several times a second
};

// Runs all works. Each process is in its own process group, so that signals of a terminal reach only this process,
// which asks the others to end. If anything throws, including a callback, running processes are ended in the same way
// first.
void work_through(const std::vector<Work>& works, const Workers& workers);

}  // namespace sb
