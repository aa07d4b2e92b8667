// The benchmark's metric and loss in plain double; what faster implementations are held to.
#pragma once
#include <cstdint>
#include <vector>

#include "tasks/batch.h"

namespace sb {

struct Score {
  double accuracy = 0;  // elements named right; nan without any
  double loss = 0;      // mean cross-entropy over real frames, nats
  int64_t elements = 0;
  int64_t frames = 0;
};

// Logits [batch][frames][classes]. For each element the softmax is summed over its frames; the first largest entry is
// the prediction. `predicted`, when given, gets [batch][elements]. `padded_elements_right`: the reference's fault; each
// row counts as many elements as the row with most (`elements` of the batch), and those without frames count as named
// right.
struct ScoreOptions {
  bool padded_elements_right = false;
};
Score segment_score(const Batch& batch, const float* logits, int classes, ScoreOptions options = {},
                    std::vector<int32_t>* predicted = nullptr);

}  // namespace sb
