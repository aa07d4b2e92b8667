// A suite at work: a line a running job on a terminal, redrawn in place; elsewhere lines when runs begin and end, and
// in between often enough to see that it lives.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "cli/progress.h"

namespace sb::cli {

class Board {
 public:
  Board(size_t total, size_t done, Console console);

  void started(size_t work, const std::string& name);
  void said(size_t work, const std::string& line);  // output of a run; everything but progress is ignored
  void over(size_t work, const std::string& outcome, bool counts);  // `counts`: one more is done
  void say(const std::string& line) { lines_.say(line); }
  void tick();
  std::function<double()> clock() const { return lines_.console().clock; }  // seconds
  // The last known progress of the run; null before its first report.
  const RunProgress* progress(size_t work) const;

 private:
  struct Job {
    std::string name;
    RunPace pace;
  };
  std::string text(const Job& job, double now) const;

  size_t total_, done_;
  LiveLines lines_;
  std::map<size_t, Job> jobs_;
  double heard_ = 0;  // when running jobs were last printed
};

}  // namespace sb::cli
