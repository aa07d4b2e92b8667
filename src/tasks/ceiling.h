// The best any causal model can do: what the task's oracle scores.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tasks/task.h"

namespace sb {

// `accuracy`: what the exact filter scores under the metric when its posterior is a model's output at each frame.
// Estimated as the posterior, given frames and segment, of the state the filter names: the same mean as counting right
// answers
// (`filter_accuracy`), with less spread.
// `upper_bound`: the posterior of the best state given frames and segment. The metric's decision on a causal model is a
// function of exactly these, so none exceeds it; the best causal model lies between the two. They are equal where
// frames tell data from gaps (none, or blank ones); with wrong symbols the metric's knowledge of the segment is worth a
// little.
struct Ceiling {
  double accuracy = 0;
  double stderr_ = 0;          // of `accuracy`, from the spread between samples
  double filter_accuracy = 0;  // `accuracy` by counting
  double filter_stderr = 0;
  double upper_bound = 0;
  double realised = 0;             // `upper_bound` by counting
  double last_frame_accuracy = 0;  // counted, where the posterior at the element's last frame decides, without the sum
  uint64_t samples = 0;
  double mean_entropy = 0;                  // nats per element, given frames and segment
  bool exact = true;                        // false: noise > 1 hides symbols, and the figures are only upper bounds
  std::vector<double> by_position;          // [elements], of `accuracy`
  std::vector<double> entropy_by_position;  // [elements]
};

struct CeilingRequest {
  Split split = Split::test;
  uint64_t first = 0;
  uint64_t samples = 1000;
  int threads = 0;  // 0: all cores; the result does not depend on it
  // Samples done; called from the calling thread, ends the work by throwing.
  std::function<void(uint64_t)> progress = {};
};
// Samples worked on between two calls of `progress`: some tens of thousands of frames a thread, however long they are.
size_t samples_a_round(const Task& task, Split split, int threads);
// All of these throw bad_input where the task has no oracle.
std::unique_ptr<Oracle> expect_oracle(const Task& task, Split split);
Ceiling exact_ceiling(const Task& task, const CeilingRequest& request);

// Objective `predict`. The metric sums a model's output over the frames of element e, t = 1..n; its first largest entry
// is held against the class of element e + 1 (elements with a successor count), and KL(law(s_e) || sum / n), law the
// grammar's next_symbol_law of the true state, is averaged over all elements. The two have different best predictors:
//   accuracy  of q_t(c) = P(next class = c | frames 1..t), with strings conditioned on fitting the length, as they are
//             drawn. Estimated as P(next class = the one named | frames, segment): the mean of counting (`counted`).
//   kl        of q_t = sum_s P(s | frames 1..t) law(s). Estimated as its mean over P(s | frames, segment): the mean of
//             what the metric scores with the true state (`kl_counted`).
// `upper_bound` and `kl_bound` are those of the same laws given frames and segment: what the metric makes of a causal
// model is a function of exactly these, so none has a higher expected accuracy or a lower expected KL. Where frames
// tell data from gaps they equal `accuracy` and `kl`.
struct PredictCeiling {
  double accuracy = 0, stderr_ = 0;
  double counted = 0, counted_stderr = 0;
  double upper_bound = 0;
  double kl = 0, kl_stderr = 0;  // nats an element
  double kl_counted = 0, kl_counted_stderr = 0;
  double kl_bound = 0;
  uint64_t samples = 0;
  bool exact = true;                   // false: noise > 1 hides symbols; no accuracy is higher, no KL lower
  std::vector<double> by_position;     // [elements - 1], of `accuracy`
  std::vector<double> kl_by_position;  // [elements], of `kl`
};
PredictCeiling predict_ceiling(const Task& task, const CeilingRequest& request);  // of a task with a law

}  // namespace sb
