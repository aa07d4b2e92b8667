// Interface that computes the posterior over states after each frame of a sample: the best a causal model could know.
// Ceiling, breakdowns and records use oracles only through this interface. The exact filter is the first
// implementation.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "tasks/batch.h"

namespace sb {

struct Belief {
  int32_t best = 0;        // id of the state with the largest posterior; the lowest on ties
  double probability = 0;  // its posterior
  double entropy = 0;      // nats
};

struct StateProbability {
  int32_t id = 0;
  double probability = 0;
};

// Beliefs are about the element that the last frame belongs to, given the frames so far. With `gap_frames` >= 0 they
// are also given that the element consists of exactly the last 1 + gap_frames frames. The metric knows where elements
// begin and end, so this bounds what it can get from a causal model.
class Oracle {
 public:
  static constexpr int causal = -1;  // value of gap_frames: given only the frames so far

  virtual ~Oracle() = default;
  virtual int states() const = 0;
  virtual int classes() const { return states(); }       // number of symbol classes
  virtual bool exact() const { return true; }            // false: noise hides symbols, and beliefs are only bounds
  virtual void reset() = 0;                              // begins a new sample
  virtual void frame(int16_t symbol);                    // class or kBlankFrame; throws check_failed if impossible here
  virtual void dense_frame(const float* channels);       // instead of frame() in tasks with dense frames
  void batch_frame(const Batch& batch, int row, int t);  // frame t of a row, whichever the batch has
  virtual Belief belief(int gap_frames = causal) const;
  // Entries > 0, ascending by id.
  virtual void posterior(std::vector<StateProbability>& out, int gap_frames = causal) const = 0;
  // Distribution of the next element's class, [classes]. next_classes: as drawn, with length conditioning. mean_law:
  // Task::law, averaged over states. Only oracles of tasks with a law need them.
  virtual void next_classes(double* over_classes, int gap_frames = causal) const;
  virtual void mean_law(double* over_classes, int gap_frames = causal) const;

  // Log-probability of the frames so far, nats, without noise; nullopt if the oracle does not compute it.
  virtual std::optional<double> log_likelihood() const { return std::nullopt; }

  void posterior(double* over_ids, int gap_frames = causal) const;  // [states], by id
  virtual double probability(int32_t id, int gap_frames) const;     // one entry of the posterior
};

// Interface that computes the best estimate of a task with squared error after each frame of a sample.
class Estimator {
 public:
  virtual ~Estimator() = default;
  virtual void reset() = 0;                       // begins a new sample
  virtual void frame(const float* channels) = 0;  // one dense frame
  // Posterior mean and variance of each value given the frames so far, [answers] each.
  virtual void estimate(double* mean, double* variance) const = 0;
};

// The oracle's beliefs about one element, for `show` and for breakdowns of a model's accuracy.
struct ElementBelief {
  Belief given_segment;           // belief(gap frames) at the element's last frame
  Belief causal;                  // belief() there
  int32_t state = 0;              // true id
  int32_t summed_best = 0;        // argmax of the posteriors summed over the element's frames, as in the metric
  double summed_probability = 0;  // posterior of summed_best, given frames and segment
  int32_t since_certain = 0;      // elements since the state was last certain (posterior >= 1 - 1e-9); 0: certain now
};
// Resets the oracle and follows row `row` of a batch of its split.
std::vector<ElementBelief> follow(Oracle& oracle, const Batch& batch, int row);

}  // namespace sb
