// Progress display of a running suite. On a terminal: a header with counts and time left, and one line per running job,
// redrawn in place. In a log: a line when a run starts or ends, and regular lines in between to show that it is alive.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "jobs/progress.h"

namespace sb {

class Board {
 public:
  // Names are padded to `name_width`.
  Board(size_t total, size_t done, size_t name_width, Console console);

  void started(size_t work, const std::string& name);
  void said(size_t work, const std::string& line);  // output of a run; everything but progress is ignored
  void over(size_t work, const std::string& outcome, bool counts);  // `counts`: the run counts as done
  void drop(size_t work) { jobs_.erase(work); }                     // ended, but not reported
  void say(const std::string& line) { lines_.say(line); }
  void time_left(std::optional<double> seconds) { left_ = seconds; }  // for all runs that are not done
  void tick();
  std::function<double()> clock() const { return lines_.console().clock; }  // seconds
  // The last known progress of the run; null before its first report.
  const RunProgress* progress(size_t work) const;

 private:
  struct Job {
    std::string name;
    RunPace pace;
  };
  std::string header() const;
  std::vector<std::string> job_lines(double now) const;
  std::string padded_name(const std::string& name, size_t beside) const;

  size_t total_, done_, name_width_;
  std::optional<double> left_;
  LiveLines lines_;
  std::map<size_t, Job> jobs_;
  double heard_ = 0;  // when running jobs were last printed
};

}  // namespace sb
