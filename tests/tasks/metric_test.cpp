#include <gtest/gtest.h>

#include <cmath>

#include "golden_json.h"
#include "tasks/given_task.h"

namespace sb {
namespace {

// A recorded case as a batch; elements that a row has not got are empty spans at its end.
Batch recorded_batch(const nlohmann::json& recorded) {
  const int rows = recorded["B"], frames = recorded["T"], elements = recorded["elements_padded_to"];
  std::vector<int32_t> start, target;
  for (int b = 0; b < rows; ++b) {
    const auto& spans = recorded["element_start_len"][b];
    for (const auto& span : spans) start.push_back(span[0]);
    const int length = recorded["lens"][b];
    start.insert(start.end(), static_cast<size_t>(elements) + 1 - spans.size(), length);
    for (int t = 0; t < frames; ++t) target.push_back(t < length ? int{recorded["labels"][b][t]} : -1);
  }
  return test::given_batch(rows, frames, elements, std::move(start), std::move(target));
}

TEST(Metric, MatchesReferenceAccuracyAndLoss) {
  for (const auto& recorded : test::read_golden("grammar/metric_cases.json.gz")) {
    SCOPED_TRACE(recorded["name"].get<std::string>());
    const Batch batch = recorded_batch(recorded);
    std::vector<int32_t> named;
    const Evaluation found = test::scored(batch, recorded["logits"], recorded["C"], true, &named);
    for (size_t i = 0; i < named.size(); ++i) {
      if (batch.state[i] < 0) continue;
      const size_t elements = static_cast<size_t>(batch.elements);
      EXPECT_EQ(named[i], recorded["pred"][i / elements][i % elements]);
    }
    EXPECT_NEAR(found.elements.value(), recorded["accuracy"], 1e-6);
    EXPECT_NEAR(found.loss, recorded["loss"], 2e-6 * found.loss);
  }
}

TEST(Metric, ElementsWithoutFramesCountOnlyWithReferenceFault) {
  // six wrong elements and two padded ones, as the reference was run
  const Batch batch = test::given_batch(1, 6, 8, {0, 1, 2, 3, 4, 5, 6, 6, 6}, {1, 1, 1, 1, 1, 1});
  std::vector<float> logits;
  for (int t = 0; t < 6; ++t) logits.insert(logits.end(), {5, 0, 0});
  const Evaluation ours = test::scored(batch, logits, 3);
  EXPECT_EQ(ours.elements.value(), 0);
  EXPECT_EQ(ours.elements.total, 6);
  EXPECT_EQ(test::scored(batch, logits, 3, true).elements.value(), 0.25);
  EXPECT_NEAR(ours.loss, std::log(std::exp(5.0) + 2), 1e-6);
}

TEST(Metric, SegmentSumOverridesDataFrame) {
  const Batch batch = test::given_batch(1, 3, 1, {0, 3}, {1, 1, 1});
  std::vector<int32_t> named;
  EXPECT_EQ(test::scored(batch, {1, 0, 0, 1, 0, 1}, 2, false, &named).elements.value(), 1);
  EXPECT_EQ(named, std::vector<int32_t>{1});
}

}  // namespace
}  // namespace sb
