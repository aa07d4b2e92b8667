#include "tasks/metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "golden_json.h"

namespace sb {
namespace {

// A recorded case as a batch; elements that a row has not got are empty spans at its end.
Batch recorded_batch(const nlohmann::json& recorded) {
  Batch batch;
  batch.batch = recorded["B"];
  batch.frames = recorded["T"];
  batch.elements = recorded["elements_padded_to"];
  for (int b = 0; b < batch.batch; ++b) {
    const auto& spans = recorded["element_start_len"][b];
    for (const auto& span : spans) batch.start.push_back(span[0]);
    const int frames = recorded["lens"][b];
    batch.start.insert(batch.start.end(), static_cast<size_t>(batch.elements) + 1 - spans.size(), frames);
    for (int t = 0; t < batch.frames; ++t) batch.target.push_back(t < frames ? int{recorded["labels"][b][t]} : -1);
  }
  return batch;
}

TEST(Metric, MatchesReferenceAccuracyAndLoss) {
  for (const auto& recorded : test::read_golden("grammar/metric_cases.json.gz")) {
    SCOPED_TRACE(recorded["name"].get<std::string>());
    const Batch batch = recorded_batch(recorded);
    const auto logits = recorded["logits"].get<std::vector<float>>();
    std::vector<int32_t> predicted;
    const Score score = segment_score(batch, logits.data(), recorded["C"], {.padded_elements_right = true}, &predicted);
    std::vector<int32_t> expected;
    for (const auto& row : recorded["pred"]) expected.insert(expected.end(), row.begin(), row.end());
    EXPECT_EQ(predicted, expected);
    EXPECT_NEAR(score.accuracy, recorded["accuracy"], 1e-6);
    EXPECT_NEAR(score.loss, recorded["loss"], 2e-6 * score.loss);
  }
}

TEST(Metric, ElementsWithoutFramesCountOnlyWithReferenceFault) {
  Batch batch;  // six wrong elements and two padded ones, as the reference was run
  batch.batch = 1;
  batch.frames = 6;
  batch.elements = 8;
  batch.target.assign(6, 1);
  batch.start = {0, 1, 2, 3, 4, 5, 6, 6, 6};
  std::vector<float> logits;
  for (int t = 0; t < 6; ++t) logits.insert(logits.end(), {5, 0, 0});
  const Score ours = segment_score(batch, logits.data(), 3);
  EXPECT_EQ(ours.accuracy, 0);
  EXPECT_EQ(ours.elements, 6);
  const Score published = segment_score(batch, logits.data(), 3, {.padded_elements_right = true});
  EXPECT_EQ(published.accuracy, 0.25);
  EXPECT_NEAR(ours.loss, std::log(std::exp(5.0) + 2), 1e-12);
}

TEST(Metric, SegmentSumOverridesDataFrame) {
  Batch batch;
  batch.batch = 1;
  batch.frames = 3;
  batch.elements = 1;
  batch.target = {1, 1, 1};
  batch.start = {0, 3};
  const std::vector<float> logits = {1, 0, 0, 1, 0, 1};
  std::vector<int32_t> predicted;
  EXPECT_EQ(segment_score(batch, logits.data(), 2, {}, &predicted).accuracy, 1);
  EXPECT_EQ(predicted, std::vector<int32_t>{1});
}

TEST(Metric, IsNaNForEmptyBatch) {
  const Score score = segment_score(Batch{}, nullptr, 3);
  EXPECT_TRUE(std::isnan(score.accuracy));
  EXPECT_TRUE(std::isnan(score.loss));
}

}  // namespace
}  // namespace sb
