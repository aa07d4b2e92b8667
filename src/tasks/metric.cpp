#include "tasks/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sb {
namespace {

// Adds softmax(logits) to `sum`; gives the log of the normaliser.
double add_softmax(const float* logits, int classes, std::vector<double>& scratch, std::vector<double>& sum) {
  const double top = *std::max_element(logits, logits + classes);
  double total = 0;
  for (int c = 0; c < classes; ++c) total += scratch[c] = std::exp(logits[c] - top);
  for (int c = 0; c < classes; ++c) sum[c] += scratch[c] / total;
  return top + std::log(total);
}

}  // namespace

Score segment_score(const Batch& batch, const float* logits, int classes, ScoreOptions options,
                    std::vector<int32_t>* predicted) {
  Score score;
  int64_t right = 0;
  double loss = 0;
  std::vector<double> scratch(static_cast<size_t>(classes)), sum(static_cast<size_t>(classes));
  if (predicted != nullptr) predicted->clear();
  for (int b = 0; b < batch.batch; ++b) {
    const int32_t* start = batch.start.data() + static_cast<size_t>(b) * (batch.elements + 1);
    const size_t row = static_cast<size_t>(b) * batch.frames;
    for (int e = 0; e < batch.elements; ++e) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (int t = start[e]; t < start[e + 1]; ++t) {
        const float* frame = logits + (row + static_cast<size_t>(t)) * classes;
        loss += add_softmax(frame, classes, scratch, sum) - frame[batch.target[row + static_cast<size_t>(t)]];
        ++score.frames;
      }
      const auto best = static_cast<int32_t>(std::max_element(sum.begin(), sum.end()) - sum.begin());
      if (predicted != nullptr) predicted->push_back(best);
      const bool real = start[e + 1] > start[e];
      if (!real && !options.padded_elements_right) continue;
      ++score.elements;
      right += !real || best == batch.target[row + static_cast<size_t>(start[e])] ? 1 : 0;
    }
  }
  const double none = std::numeric_limits<double>::quiet_NaN();
  score.accuracy = score.elements > 0 ? static_cast<double>(right) / static_cast<double>(score.elements) : none;
  score.loss = score.frames > 0 ? loss / static_cast<double>(score.frames) : none;
  return score;
}

}  // namespace sb
