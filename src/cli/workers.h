// Runs of a suite in processes of their own, a few at a time.
#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sb::cli {

// A process started here holds the reading end of a pipe as this descriptor and ends when the other end closes: on
// request, or because this process is gone, however that ended.
constexpr int kLifeline = 3;
constexpr int kSecondInput = 4;

struct Work {
  std::vector<std::string> arguments;  // of this same program
  std::string input;                   // the content of its standard input, a file without a name
  std::string second_input;            // of another, descriptor kSecondInput
  std::string name;                    // for people
};

struct WorkDone {
  int exit_code = 0;  // 128 + signal where one ended it
  double seconds = 0;
  std::string errors;  // what it wrote to standard error
};

struct Workers {
  int jobs = 1;
  // Which of those that wait (places of works, in order) is started next; nothing: none now. Unset: the first.
  std::function<std::optional<size_t>(const std::deque<size_t>& waiting)> pick;
  // GPUs by their names: a process is handed the one that has the fewest of the others as its only one, so `jobs` are
  // spread evenly over them; empty: all of them are anybody's.
  std::vector<std::string> cards;
  std::function<void(size_t work)> started;
  std::function<void(size_t work, const std::string& line)> said;  // a line of its standard output
  // True: the work is done again after all others.
  std::function<bool(size_t work, const WorkDone&)> finished;
  std::function<bool()> stop;      // true: running ones are asked to end, no more are started
  std::function<void()> stopping;  // once, when they are asked
  std::function<void()> tick;      // several times a second
};

// Processes are in groups of their own, so that what a terminal sends reaches this one alone, which asks them to end.
// Whatever is thrown, by a callback too, running ones end as on request before it leaves here.
void work_through(const std::vector<Work>& works, const Workers& workers);

}  // namespace sb::cli
