// A task of which only batches are given: the metric of elements with known answers.
#pragma once
#include "tasks/metric_accumulator.h"

namespace sb::test {

class GivenTask : public Task {
 public:
  GivenTask(int answers, int elements) : shape_{1, answers, elements} {}
  TaskShape shape() const override { return shape_; }
  std::string canonical_text() const override { return "given"; }
  int max_frames(Split) const override { return 0; }
  double mean_frames(Split) const override { return 0; }
  void fill(Split, std::span<const uint64_t>, Batch&, int) const override {}

 private:
  TaskShape shape_;
};

// Elements own frames [start[e], start[e + 1]) of their row; target [batch][frames], -1 on padding.
inline Batch given_batch(int rows, int frames, int elements, std::vector<int32_t> start, std::vector<int32_t> target) {
  Batch out;
  out.batch = rows;
  out.frames = frames;
  out.elements = elements;
  out.start = std::move(start);
  out.target = std::move(target);
  out.element.assign(out.target.size(), -1);
  out.samples.resize(static_cast<size_t>(rows));
  for (int b = 0; b < rows; ++b) {
    const size_t row = static_cast<size_t>(b) * static_cast<size_t>(frames);
    const int32_t* starts = out.starts(b);
    for (int e = 0; e < elements; ++e) {
      for (int t = starts[e]; t < starts[e + 1]; ++t) out.element[row + static_cast<size_t>(t)] = e;
      out.state.push_back(starts[e] < starts[e + 1] ? out.target[row + static_cast<size_t>(starts[e])] : -1);
    }
  }
  return out;
}

// The metric of logits [batch][frames][answers]; `named` receives the model's answers.
inline Evaluation scored(const Batch& batch, const std::vector<float>& logits, int answers,
                         bool padding_correct = false, std::vector<int32_t>* named = nullptr) {
  const GivenTask task(answers, batch.elements);
  MetricAccumulator metric(task, {.padding_correct = padding_correct});
  metric.begin(batch);
  metric.logits(0, batch.frames, logits.data());
  metric.end();
  if (named != nullptr) *named = metric.named();
  return metric.result();
}

}  // namespace sb::test
