// Progress of long work on standard error: redrawn lines on a terminal, plain lines otherwise.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

#include "jobs/console.h"

namespace sb {

// Maximum seconds between two lines in a log or pipe.
constexpr double kPlainLine = 20;

// Speed of work over a recent window, excluding pauses (evaluations).
class Pace {
 public:
  void reach(double now, int64_t done);  // the first call starts counting
  void pause(double now);
  void resume(double now);
  double rate() const;                   // per second; 0: not known yet
  double left(int64_t remaining) const;  // seconds, including a proportional share of pauses; -1: not known yet

 private:
  struct Mark {
    double worked = 0;  // seconds
    int64_t done = 0;
  };
  std::deque<Mark> marks_;  // the first is the start of the window
  Mark now_;
  double last_ = 0, paused_ = 0;  // clock time; seconds
  int64_t first_ = 0;
  bool running_ = false;
};

std::string rate_text(double rate);  // "1,234/s", "12.3/s", "0.45/s", "12.3 s each"

class Progress {
 public:
  Progress(std::string what, uint64_t total, Console console);
  void update(uint64_t done);

 private:
  std::string line(uint64_t done) const;

  std::string what_;
  uint64_t total_;
  Pace pace_;
  double shown_ = 0;
  LiveLines lines_;
};

// Progress of a run; processes exchange it as one JSON object per line.
struct RunProgress {
  std::string phase;  // "waiting" for the run's lock, or a phase of TrainProgress (train/trainer.h)
  int64_t update = 0, updates = 0;
  double loss = 0;
  double valid = -1;                // accuracy of the last evaluation, or its squared error; -1: none yet
  std::string metric = "accuracy";  // name of `valid`; not sent to other processes
};
std::string to_line(const RunProgress& progress);
bool from_line(std::string_view line, RunProgress& progress);  // false: the line is not progress

// State of one run as text, updated by each report.
class RunPace {
 public:
  void report(double now, const RunProgress& progress);
  const RunProgress& progress() const { return progress_; }
  bool known() const { return known_; }
  // "37 %", "12.3/s", "3 min 20 s left", "loss 1.234", "valid 0.432"; empty if not known. Outside of training, the
  // third names the phase.
  std::array<std::string, 5> columns(double now) const;
  std::string text(double now) const;  // the columns in one line

 private:
  RunProgress progress_;
  Pace pace_;
  double since_ = 0;  // start of the phase or, in training, of the update
  bool known_ = false;
};

// Progress of one run for people; its name begins every line. Call report() from the working thread, and tick() several
// times a second from any other thread.
class RunProgressReport {
 public:
  RunProgressReport(std::string name, Console console);
  void report(const RunProgress& progress);
  void say(const std::string& line);
  void tick();

 private:
  std::string name_;
  std::mutex mutex_;
  RunPace pace_;
  LiveLines lines_;
  double began_ = 0;
};

}  // namespace sb
