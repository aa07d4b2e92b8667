// Reduces a batch's predictions on their device to what the metrics need (tasks/metric_accumulator.h). From a GPU, a
// few bytes per frame are copied to the host asynchronously, instead of a probability for each answer. The results have
// the same bits as a reduction on the host: probabilities are in float, an element's frames are summed from first to
// last, and the first of several maxima counts.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "tasks/evaluate.h"

namespace sb {

class TensorReduction final : public Reduction {
 public:
  // Keeps a reference to the batch, which is read here and in take() only.
  TensorReduction(const Batch& batch, const Task& task, at::Device device);

  // Takes the logits [batch, to - from, answers] of frames [from, to). Call for consecutive ranges ("stretches"), from
  // the first frame to the last.
  void take(int from, int to, const at::Tensor& logits);
  // Call after the last take(). `wait` waits until the device has done all submitted work; empty: no need to wait.
  void finish(std::function<void()> wait) { wait_ = std::move(wait); }
  ReducedPredictions reduced() override;

 private:
  struct Stretch {
    int from = 0, to = 0;
    std::vector<size_t> ended;  // [n]: row * elements + element, for elements whose last frame is in this stretch
    at::Tensor target_probability, best;  // [batch, to - from]: probability of the target, float; best answer, int32
    at::Tensor named, sum;  // best answer of each ended element, [n] int32; sums [n, answers], if has_law_
  };
  // Describes the sums over frames for the elements of a stretch. Sums with the most terms come first, so the sums that
  // have a g-th term are adjacent.
  struct Terms {
    int64_t sums = 0;
    std::vector<int64_t> source;  // first terms of all sums, then second terms, …: row * frames + frame in the stretch,
                                  // or batch * frames + row for a sum continued from the previous stretch
    std::vector<int64_t> counts;  // number of first terms, second terms, …
    std::vector<int64_t> open;    // [batch]: index of the row's sum that continues in the next stretch; empty: none
    std::vector<int64_t> ended;   // indices of the other sums
  };
  Terms terms(int from, int to, std::vector<size_t>& ended) const;
  at::Tensor sent(const std::vector<int64_t>& values) const;
  at::Tensor fetched(const at::Tensor& values) const;

  const Batch& batch_;
  int elements_, rows_, frames_;
  int64_t answers_;
  bool has_law_;
  at::Device device_;
  at::Tensor target_;  // [batch, frames] int64; 0 for frames without a target
  at::Tensor open_;    // [batch, answers]: sums that continue in the next stretch
  std::vector<Stretch> stretches_;
  std::function<void()> wait_;
  std::vector<float> target_probability_, sum_;
  std::vector<int32_t> best_, named_;
};

}  // namespace sb
