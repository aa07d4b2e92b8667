// What runs will take, from what others like them took.
#pragma once
#include <initializer_list>
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
  std::optional<int64_t> shared_by = {};  // runs at a time on its device, itself counted; absent: not known
};

// A run is like another of the same model, task, grammar, batch and evaluation, whatever its seeds and learning rate.
// Updates take time by their number, evaluations by their samples, and the rest of a run takes what it took. Where
// there is none like it, those of the same model, task, device and precision at the nearest other size, updates and
// evaluations by their FLOPs. Seconds are of a run that has its device to itself: one that did tells more than one that
// shared it, whose seconds are divided by the number of those that did. One of which that is not known counts as it is,
// and last.
class RunCosts {
 public:
  // `flops`: of training, a token. Runs that diverged, or without a positive time, teach nothing.
  void learn(const ResolvedConfig& run, double flops, const TimeTaken& taken);
  // `left`: the share of its updates that is still to be done.
  std::optional<double> seconds(const ResolvedConfig& run, double flops, double left = 1) const;
  // The same by runs of which it is known how many shared a device, and which are no more than four times larger or
  // smaller.
  std::optional<double> seconds_alone(const ResolvedConfig& run, double flops, double left = 1) const;
  // By runs of which that is not known, as they were; and by those of any size of which it is.
  std::optional<double> seconds_as_they_were(const ResolvedConfig& run, double flops, double left = 1) const;
  std::optional<double> seconds_far(const ResolvedConfig& run, double flops, double left = 1) const;

 private:
  struct Sums {
    double update = 0, evaluation = 0, rest = 0;
    int count = 0;
  };
  struct Book {
    std::map<std::string, Sums> like;                      // seconds an update, and of evaluations as long as an update
    std::map<std::string, std::map<double, Sums>> scaled;  // by size; the same, a sample and FLOP of a token
  };
  std::optional<double> look_up(std::initializer_list<const Book*> books, const ResolvedConfig& run, double flops,
                                double left, double times) const;
  Book alone_, shared_, unknown_;
};

// Seconds until all are done, `jobs` at a time, each begun in this order as soon as another ends.
double seconds_in_parallel(const std::vector<double>& each, int jobs);
// Seconds since this process was started by the system, its libraries loaded; 0 where that is not known.
double seconds_since_start();

}  // namespace sb::cli
