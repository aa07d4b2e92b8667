// What runs will take, from what others like them took.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "runs/config_file.h"

namespace sb::cli {

// A run is like another of the same model, task, grammar, batch and evaluation, whatever its seeds and learning rate;
// seconds go with updates. Where there is none, one of the same model and task at other sizes, by its FLOPs.
class RunCosts {
 public:
  // `flops`: of training, a token. Runs without a positive time or number of updates teach nothing.
  void learn(const ResolvedConfig& run, double flops, double seconds);
  std::optional<double> seconds(const ResolvedConfig& run, double flops) const;

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
    double value() const { return sum / count; }
  };
  std::map<std::string, Mean> like_;    // seconds an update
  std::map<std::string, Mean> scaled_;  // seconds an update, sample and FLOP of a token
};

}  // namespace sb::cli
