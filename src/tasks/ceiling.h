// The best any causal model can do: exact forward filtering of the latent state given all frames so far.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tasks/batch.h"

namespace sb {

struct Belief {
  int32_t best = 0;        // state id of the largest posterior, the lowest of equals
  double probability = 0;  // its posterior
  double entropy = 0;      // nats
};

struct StateProbability {
  int32_t id = 0;
  double probability = 0;
};

// Follows one sample frame by frame. Knows the grammar, the length conditioning of strings (each is at most `length`
// long), concatenation, the number of elements, the gap law and the law of wrong symbols. A hypothesis is (state,
// elements of the current string so far, element index, gap frames since the element); the belief is the list of live
// ones. Frames are taken for what they show: exact for noise <= 1, where the largest channel tells symbol and blank
// apart.
class ExactFilter {
 public:
  ExactFilter(std::shared_ptr<const Sampler> sampler, const TaskConfig& task, Split split);
  ~ExactFilter();
  ExactFilter(ExactFilter&&) noexcept;
  void reset();
  void frame(int16_t symbol);  // class or kBlankFrame; throws check_failed if the task cannot produce it here
  Belief belief() const;       // state of the element the last frame belongs to, given the frames so far
  // The same, given also that the element's frames are exactly the last 1 + gap_frames ones: what the metric, which
  // knows where elements begin and end, can at most make of a causal model.
  Belief belief(int gap_frames) const;
  void posterior(double* over_ids) const;  // [states], by state id
  // The states that are possible, ascending by id.
  void posterior(std::vector<StateProbability>& out) const;
  void posterior(double* over_ids, int gap_frames) const;
  double probability(int32_t id, int gap_frames) const;  // one entry of it
  // Objective `predict`, [vocab]; gap_frames < 0: given the frames so far, otherwise given the segment too.
  void next_classes(double* over_classes, int gap_frames = -1) const;  // P(class of the next element)
  void mean_law(double* over_classes,
                int gap_frames = -1) const;  // the grammar's next_symbol_law, averaged over states
  double log_likelihood() const;             // of the frames so far, nats
  size_t live() const;                       // hypotheses
  int states() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One element as the filter sees it, for `show` and for breakdowns of a model's accuracy.
struct ElementBelief {
  Belief given_segment;           // belief(gap frames) at the element's last frame
  Belief causal;                  // belief() there
  int32_t state = 0;              // true id
  int32_t summed_best = 0;        // argmax of the posteriors summed over the element's frames, as the metric does
  double summed_probability = 0;  // posterior of that state, given frames and segment
  int32_t since_certain = 0;      // elements since the state was last certain (posterior >= 1 - 1e-9); 0: certain now
};
// Row `row` of a batch of the filter's split; the filter is reset first.
std::vector<ElementBelief> follow(ExactFilter& filter, const Batch& batch, int row);

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
  int threads = 0;                         // 0: all cores; the result does not depend on it
  std::function<void(uint64_t)> progress;  // samples done; called from the calling thread, ends the work by throwing
};
// Samples worked on between two calls of `progress`: some tens of thousands of frames a thread, however long they are.
size_t samples_a_round(const GapConfig& gap, int length, int threads);
Ceiling exact_ceiling(std::shared_ptr<const Sampler> sampler, const TaskConfig& task, const CeilingRequest& request);

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
PredictCeiling predict_ceiling(std::shared_ptr<const Sampler> sampler, const TaskConfig& task,
                               const CeilingRequest& request);

}  // namespace sb
