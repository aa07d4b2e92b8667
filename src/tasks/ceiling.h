// The best any causal model can do: exact forward filtering of the latent state given all frames so far.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tasks/batch.h"

namespace sb {

// What the filter believes after all frames of an element: the posterior over states, its argmax and entropy.
struct Belief {
  int32_t best = 0;         // state index of the largest posterior
  double probability = 0;   // its posterior
  double entropy = 0;       // nats
};

// Follows one sample frame by frame. Knows the grammar, the length conditioning of strings (each is at most `length` long),
// concatenation, the cut, the gap law and the law of wrong symbols.
class ExactFilter {
 public:
  ExactFilter(std::shared_ptr<const Sampler> sampler, const TaskConfig& task, Split split);
  ~ExactFilter();
  void reset();
  void frame(int16_t symbol);              // class or kBlankFrame
  Belief belief() const;
  void posterior(double* over_states) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Ceiling {
  double accuracy = 0;          // optimal expected accuracy over elements
  double stderr_ = 0;           // of the mean over samples
  uint64_t samples = 0;
  double mean_entropy = 0;      // nats per element
  std::vector<double> by_position;          // [elements]
  std::vector<double> entropy_by_position;  // [elements]
};

struct CeilingRequest {
  Split split = Split::test;
  uint64_t first = 0;
  uint64_t samples = 1000;
  int threads = 0;
  std::function<void(uint64_t)> progress;  // samples done
};
Ceiling exact_ceiling(std::shared_ptr<const Sampler> sampler, const TaskConfig& task, const CeilingRequest& request);

}  // namespace sb
