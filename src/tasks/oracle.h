// Whoever knows a task follows a sample frame by frame and says how likely each state is: what the best causal model
// could know. Ceiling, breakdowns and records see it through this alone; the exact filter is the first.
#pragma once
#include <cstdint>
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

// Beliefs are about the element the last frame belongs to, given the frames so far. With `gap_frames` >= 0 also given
// that the element's frames are exactly the last 1 + gap_frames ones: what the metric, which knows where elements begin
// and end, can at most make of a causal model.
class Oracle {
 public:
  static constexpr int causal = -1;  // gap_frames: only the frames so far are known

  virtual ~Oracle() = default;
  virtual int states() const = 0;
  virtual int classes() const = 0;         // of symbols
  virtual bool exact() const = 0;          // false: frames hide symbols, so that what follows are only bounds
  virtual void reset() = 0;                // a new sample begins
  virtual void frame(int16_t symbol) = 0;  // class or kBlankFrame; throws check_failed if the task has none here
  virtual Belief belief(int gap_frames = causal) const = 0;
  virtual void posterior(std::vector<StateProbability>& out, int gap_frames = causal) const = 0;  // > 0, by rising id
  // [classes] of the next element: as it is drawn; and the language's own law (next_symbol_law), averaged over states.
  virtual void next_classes(double* over_classes, int gap_frames = causal) const = 0;
  virtual void mean_law(double* over_classes, int gap_frames = causal) const = 0;

  void posterior(double* over_ids, int gap_frames = causal) const;   // [states], by id
  virtual double probability(int32_t id, int gap_frames) const = 0;  // one entry of it
};

// One element as the oracle sees it, for `show` and for breakdowns of a model's accuracy.
struct ElementBelief {
  Belief given_segment;           // belief(gap frames) at the element's last frame
  Belief causal;                  // belief() there
  int32_t state = 0;              // true id
  int32_t summed_best = 0;        // argmax of the posteriors summed over the element's frames, as the metric does
  double summed_probability = 0;  // posterior of that state, given frames and segment
  int32_t since_certain = 0;      // elements since the state was last certain (posterior >= 1 - 1e-9); 0: certain now
};
// Row `row` of a batch of the oracle's split; the oracle is reset first.
std::vector<ElementBelief> follow(Oracle& oracle, const Batch& batch, int row);

}  // namespace sb
