// Predictors without a network: chance, the most frequent state, n-grams, and a table of counted transitions.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tasks/ngram.h"

namespace sb {

// The table learner counts starts and transitions in labelled samples, then filters like the exact filter. It
// knows the distribution of gaps, but neither the grammar nor the length conditioning.
// Suppose n departures from state s were counted. A class seen after s leads to each of its states with probability
// count / (n + b). A class never seen after s leads to each of its states with b / (n + b) times the state's share of
// all elements (b = 0.5); it also counts as forbidden after s.
// Hypotheses with a weight below 1e-4 are dropped. If no hypothesis explains a frame, all take it as a new element.
struct Baselines {
  double chance = 0;                      // 1 / states
  double majority = 0;                    // the most frequent state of the training samples
  std::array<double, kMaxGram> n_gram{};  // entry n-1
  int n = 1;                              // the n-gram to cite: the best on `test_samples` samples of valid
  double n_gram_stderr = 0;               // of its accuracy
  double table_learner = 0;               // under the metric: posteriors summed over an element's frames
  uint64_t train_samples = 0;
  uint64_t test_samples = 0;
};

// Accuracies over the elements of samples first .. first+test_samples-1 of `split`, after learning from the labelled
// training samples 0 .. train_samples-1. threads 0: all cores; results do not depend on it. `poll` is called now and
// then from the calling thread and may throw to end the work.
Baselines baselines(std::shared_ptr<const Language> language, const TaskConfig& task, uint64_t train_samples,
                    uint64_t test_samples, int threads, Split split = Split::test, uint64_t first = 0,
                    const std::function<void()>& poll = {});

}  // namespace sb
