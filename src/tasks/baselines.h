// Predictors without a network: chance, the commonest state, n-grams, and a table of counted transitions.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tasks/ngram.h"

namespace sb {

struct Baselines {
  double chance = 0;                      // 1 / states
  double majority = 0;                    // the commonest state of the training samples
  std::array<double, kMaxGram> n_gram{};  // entry n-1
  int n = 1;                              // the n-gram to cite: the best on as many samples of valid
  double n_gram_stderr = 0;               // of its accuracy
  double table_learner = 0;
  uint64_t train_samples = 0;
  uint64_t test_samples = 0;
};

// Accuracies over elements of the samples first .. first+test_samples-1 of `split`, learnt from labelled training
// samples 0 .. train_samples-1. threads 0: all cores; no influence on results. `poll` is called now and then from the
// calling thread and ends the work by throwing.
Baselines baselines(std::shared_ptr<const Language> language, const TaskConfig& task, uint64_t train_samples,
                    uint64_t test_samples, int threads, Split split = Split::test, uint64_t first = 0,
                    const std::function<void()>& poll = {});

// Counts starts and transitions of labelled samples, then filters as the exact filter does, with the gap law known but
// neither grammar nor length conditioning. After n departures from s, a class seen there before leads to its states
// with probability count / (n + b); one never seen to every state of the class with b / (n + b) times the state's share
// of all elements (b = 0.5), and is taken for a forbidden one. Hypotheses below 1e-4 are dropped; a frame that none of
// the rest explains is taken for a new element of each. The accuracy under the metric (posteriors summed over the
// element's frames) for each number of training samples.
std::vector<double> table_learner_curve(std::shared_ptr<const Language> language, const TaskConfig& task,
                                        const std::vector<uint64_t>& train_samples, uint64_t test_samples, int threads);

}  // namespace sb
