// What runs will take, from what others like them took.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runs/config_file.h"

namespace sb::cli {

// Seconds of a finished run.
struct TimeTaken {
  double train = 0;  // in updates
  double total = 0;  // with start, data, evaluations, ceilings, baselines and files
  bool diverged = false;
};

// A run is like another of the same model, task, grammar, batch and evaluation, whatever its seeds and learning rate.
// Updates take time by their number, evaluations by their samples, and the rest of a run takes what it took. Where
// there is none like it, one of the same model, task, device and precision at other sizes, updates and evaluations by
// their FLOPs.
class RunCosts {
 public:
  // `flops`: of training, a token. Runs that diverged, or without a positive time, teach nothing.
  void learn(const ResolvedConfig& run, double flops, const TimeTaken& taken);
  // `left`: the share of its updates that is still to be done.
  std::optional<double> seconds(const ResolvedConfig& run, double flops, double left = 1) const;

 private:
  struct Sums {
    double update = 0, evaluation = 0, rest = 0;
    int count = 0;
  };
  std::map<std::string, Sums> like_;    // seconds an update, and of evaluations as long as an update
  std::map<std::string, Sums> scaled_;  // the same, a sample and FLOP of a token
};

// Seconds until all are done, `jobs` at a time, each begun in this order as soon as another ends.
double seconds_in_parallel(const std::vector<double>& each, int jobs);
// Seconds since this process was started by the system, its libraries loaded; 0 where that is not known.
double seconds_since_start();

}  // namespace sb::cli
