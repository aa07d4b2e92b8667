// Estimates the time of runs from similar finished runs.
#pragma once
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/config_file.h"

namespace sb {

// Seconds of a finished run.
struct TimeTaken {
  double train = 0;  // of updates
  double total = 0;  // including start, data, evaluations, ceilings, baselines and files
  bool diverged = false;
  std::optional<int64_t> shared_by = {};  // concurrent runs on its device, including this run; absent: not known
};

// Estimates by similar runs: same model, task, grammar, batch and evaluation, with any seeds and learning rate. The
// time of updates scales with their number, the time of evaluations with their samples; the rest is constant. If there
// is no similar run, runs of the same model, task, device and precision at the nearest other size are used; updates and
// evaluations then scale with FLOPs.
//
// Estimates are for a run that has its device to itself. Runs that had their device to themselves are preferred. For
// runs that shared it, the time is divided by the number of concurrent runs. If that number is not known, the time is
// used unchanged, after all others.
class RunCosts {
 public:
  // `flops`: training FLOPs per token. Diverged runs and runs without a positive time are ignored.
  void learn(const ResolvedConfig& run, double flops, const TimeTaken& taken);
  // `left`: share of its updates that remain.
  std::optional<double> seconds(const ResolvedConfig& run, double flops, double left = 1) const;
  // The same, using only runs with a known number of concurrent runs whose size differs by at most a factor of four.
  std::optional<double> seconds_alone(const ResolvedConfig& run, double flops, double left = 1) const;
  // seconds_as_they_were: uses runs with an unknown number of concurrent runs, unchanged. seconds_far: uses runs of any
  // size with a known number.
  std::optional<double> seconds_as_they_were(const ResolvedConfig& run, double flops, double left = 1) const;
  std::optional<double> seconds_far(const ResolvedConfig& run, double flops, double left = 1) const;

 private:
  struct Sums {
    double update = 0, evaluation = 0, rest = 0;
    int count = 0;
  };
  struct Book {
    std::map<std::string, Sums> like;  // seconds per update, and per update-equivalent of evaluation
    std::map<std::string, std::map<double, Sums>> scaled;  // by size; the same, per sample and FLOP of a token
  };
  std::optional<double> look_up(std::initializer_list<const Book*> books, const ResolvedConfig& run, double flops,
                                double left, double times) const;
  Book alone_, shared_, unknown_;
};

// Seconds until all are done with `jobs` at a time, each started in this order as soon as another ends.
double seconds_in_parallel(const std::vector<double>& each, int jobs);
// Seconds since the system started this process, including the loading of libraries; 0 if not known.
double seconds_since_start();

}  // namespace sb
