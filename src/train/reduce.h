// Predictions of a batch reduced where they lie to what the tally needs: on a GPU a few bytes a frame travel to the
// host instead of a probability for each answer, and nothing waits for them. Gives the tally's own numbers, bit for
// bit: probabilities in float, summed over an element's frames from first to last, the first of equal ones.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "tasks/evaluate.h"

namespace sb {

class TensorReduction final : public Reduction {
 public:
  // The batch is read here and in take() alone.
  TensorReduction(const Batch& batch, const Task& task, at::Device device);

  // Logits [batch, to - from, answers] of frames [from, to), stretch by stretch from the first frame to the last.
  void take(int from, int to, const at::Tensor& logits);
  // Once all frames are taken. `wait` returns when everything handed to the device so far is done; empty: it is.
  void finish(std::function<void()> wait) { wait_ = std::move(wait); }
  Marks marks() override;

 private:
  struct Stretch {
    int from = 0, to = 0;
    std::vector<size_t> ended;   // [n]: row * elements + element of those whose last frame lies here
    at::Tensor of_answer, best;  // [batch, to - from] float, int32
    at::Tensor named, sum;       // [n] int32, [n, answers] float where the task has a law
  };
  // Which rows of probabilities add up to the elements of a stretch. Sums with most terms come first, so that those
  // with a g-th term lie side by side.
  struct Terms {
    int64_t sums = 0;
    std::vector<int64_t> source;  // first terms of all, then second ones, …: row * frames + frame, or behind all of
                                  // these the row whose sum goes on from the stretch before
    std::vector<int64_t> counts;  // how many first terms, second ones, …
    std::vector<int64_t> open;    // [batch]: number of the sum that goes on in the next stretch; empty: none does
    std::vector<int64_t> ended;   // numbers of the others
  };
  Terms terms(int from, int to, std::vector<size_t>& ended) const;
  at::Tensor sent(const std::vector<int64_t>& values) const;
  at::Tensor fetched(const at::Tensor& values) const;

  const Batch& batch_;
  int elements_, rows_, frames_;
  int64_t answers_;
  bool has_law_;
  at::Device device_;
  at::Tensor target_;  // [batch, frames] int64, 0 where nothing is asked
  at::Tensor open_;    // [batch, answers]: sums that go on in the next stretch
  std::vector<Stretch> stretches_;
  std::function<void()> wait_;
  std::vector<float> of_answer_, sum_;
  std::vector<int32_t> best_, named_;
};

}  // namespace sb
