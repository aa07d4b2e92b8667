// The best expected accuracy of any causal model: the score of the task's oracle.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tasks/task.h"

namespace sb {

// `accuracy`: score of the exact filter under the metric, with its posterior as a model's output at each frame.
// Estimated as the posterior, given frames and segment, of the state that the filter names. This has the same mean as
// counting right answers (`filter_accuracy`), with a smaller variance.
// `upper_bound`: posterior of the best state, given frames and segment. The metric's decision for a causal model is a
// function of exactly these, so no causal model exceeds the bound. The best causal model lies between the two.
// The two are equal if frames tell data from gaps (no gaps, or blank gaps). With wrong symbols, the metric's knowledge
// of the segment makes a small difference.
// All figures are over the elements that have an answer, as those of the metric.
struct Ceiling {
  double accuracy = 0;
  double stderr_ = 0;          // of `accuracy`, from the spread between samples
  double filter_accuracy = 0;  // `accuracy`, counted
  double filter_stderr = 0;
  double upper_bound = 0;
  double realised = 0;             // `upper_bound`, counted
  double last_frame_accuracy = 0;  // counted; uses only the posterior at the element's last frame, no sum
  uint64_t samples = 0;
  uint64_t asked = 0;       // elements with an answer; if 0, the other figures mean nothing
  double mean_entropy = 0;  // nats per element, given frames and segment
  // Entropy rate of the frames without noise, nats per element: the mean of -log P(frames) / elements. nullopt if the
  // oracle does not compute likelihoods.
  std::optional<double> entropy_rate = {};
  double entropy_rate_stderr = 0;
  bool exact = true;                        // false: noise > 1 hides symbols, and the figures are only upper bounds
  std::vector<double> by_position;          // [elements], of `accuracy`; NaN for an element that is never asked for
  std::vector<double> entropy_by_position;  // [elements], likewise
};

struct CeilingRequest {
  Split split = Split::test;
  uint64_t first = 0;
  uint64_t samples = 1000;
  int threads = 0;  // 0: all cores; the result does not depend on it
  // Called from the calling thread with the number of samples done; may throw to end the work.
  std::function<void(uint64_t)> progress = {};
};
// Samples between two calls of `progress`: tens of thousands of frames per thread, whatever the length of a sample.
size_t samples_a_round(const Task& task, Split split, int threads);
// These functions throw bad_input if the task has no oracle.
std::unique_ptr<Oracle> expect_oracle(const Task& task, Split split);
Ceiling exact_ceiling(const Task& task, const CeilingRequest& request);
void expect_asked(const Ceiling& ceiling);  // throws bad_input if no element has an answer

// Ceiling of tasks with a law, whose answers are classes of the next element (the objective `predict` of gaps). The
// metric sums a model's outputs over the frames t = 1..n of element e. It compares the argmax of the sum (the first on
// ties) with the answer, if the element has one. It also averages KL(law(s_e) || sum / n) over all elements, where law
// is Task::law of the true state. Accuracy and KL have different best predictors:
//   accuracy  uses q_t(c) = P(next class = c | frames 1..t), with strings conditioned on fitting the length, as they
//             are drawn. Estimated as P(next class = predicted class | frames, segment): the expected value of
//             `counted`.
//   kl        uses q_t = sum_s P(s | frames 1..t) law(s). Estimated as the mean over P(s | frames, segment): the
//             expected value of `kl_counted`, which uses the true state.
// `upper_bound` and `kl_bound` use the same distributions given frames and segment. The metric's result for a causal
// model is a function of exactly these, so no causal model has a higher expected accuracy or a lower expected KL. The
// bounds equal `accuracy` and `kl` if frames tell data from gaps.
struct PredictCeiling {
  double accuracy = 0, stderr_ = 0;  // over the elements that have an answer; 0 if there is none
  double counted = 0, counted_stderr = 0;
  double upper_bound = 0;
  double kl = 0, kl_stderr = 0;  // nats per element
  double kl_counted = 0, kl_counted_stderr = 0;
  double kl_bound = 0;
  uint64_t samples = 0;
  bool exact = true;  // false: noise > 1 hides symbols, and the figures are only bounds
  // Of `accuracy`, up to the last element that is asked for; NaN for an element that is never asked for.
  std::vector<double> by_position;
  std::vector<double> kl_by_position;  // [elements], of `kl`
};
PredictCeiling predict_ceiling(const Task& task, const CeilingRequest& request);  // requires task.has_law()

// Ceiling of a task with squared error, over the frames that are asked for: the error of the task's estimator. No
// causal model has a smaller expected error. `mse` is the mean of its posterior variances, the expected value of
// `counted`.
struct ErrorCeiling {
  double mse = 0, stderr_ = 0;
  double counted = 0, counted_stderr = 0;
  uint64_t samples = 0;
  std::vector<double> by_position;  // [elements], of `mse`; NaN for an element that is never asked for
};
ErrorCeiling error_ceiling(const Task& task, const CeilingRequest& request);

}  // namespace sb
