// The benchmark's metric and loss in plain double: the reference for faster implementations.
#pragma once
#include <cstdint>
#include <vector>

#include "tasks/batch.h"

namespace sb {

struct Score {
  double accuracy = 0;  // share of elements predicted right; nan if there are none
  double loss = 0;      // mean cross-entropy over real frames, nats
  int64_t elements = 0;
  int64_t frames = 0;
};

// Scores logits [batch][frames][classes]. For each element the softmax is summed over its frames; the prediction is the
// argmax (the first on ties). `predicted`, if given, receives [batch][elements]. `padded_elements_right` reproduces an
// error of the reference: every row counts as many elements as the longest row (`elements` of the batch), and elements
// without frames count as right.
struct ScoreOptions {
  bool padded_elements_right = false;
};
Score segment_score(const Batch& batch, const float* logits, int classes, ScoreOptions options = {},
                    std::vector<int32_t>* predicted = nullptr);

}  // namespace sb
