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
  double log_likelihood() const;  // of the frames so far, nats
  size_t live() const;            // hypotheses
  int states() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One element as the filter sees it, for `show` and for breakdowns of a model's accuracy.
struct ElementBelief {
  Belief given_segment;       // belief(gap frames) at the element's last frame
  Belief causal;              // belief() there
  int32_t state = 0;          // true id
  int32_t summed_best = 0;    // argmax of the filter's posteriors summed over the element's frames, as the metric does
  int32_t since_certain = 0;  // elements since the state was last certain (posterior >= 1 - 1e-9); 0: certain now
};
// Row `row` of a batch of the filter's split; the filter is reset first.
std::vector<ElementBelief> follow(ExactFilter& filter, const Batch& batch, int row);

// `accuracy` is the expectation of the posterior of the best state given the frames so far and the element's own
// segment. The metric sums a causal model's outputs over exactly that segment, so its decision is a function of these
// and no causal model exceeds it. `filter_accuracy` is what the filter itself scores under the metric: the optimum lies
// between the two. `last_frame_accuracy` decides from the posterior at the element's last frame alone, without the sum.
// All agree where frames tell data from gaps (no gaps, or blank ones).
struct Ceiling {
  double accuracy = 0;
  double stderr_ = 0;   // of `accuracy`, from the spread between samples
  double realised = 0;  // share of elements where that best state was the true one
  double filter_accuracy = 0;
  double last_frame_accuracy = 0;
  uint64_t samples = 0;
  double mean_entropy = 0;                  // nats per element, of the posterior behind `accuracy`
  bool exact = true;                        // false: noise > 1 hides symbols, and the figures are only upper bounds
  std::vector<double> by_position;          // [elements]
  std::vector<double> entropy_by_position;  // [elements]
};

struct CeilingRequest {
  Split split = Split::test;
  uint64_t first = 0;
  uint64_t samples = 1000;
  int threads = 0;                         // 0: all cores; the result does not depend on it
  std::function<void(uint64_t)> progress;  // samples done; called from the calling thread
};
Ceiling exact_ceiling(std::shared_ptr<const Sampler> sampler, const TaskConfig& task, const CeilingRequest& request);

}  // namespace sb
