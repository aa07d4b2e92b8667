#include "tasks/evaluate.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "small_run.h"
#include "tasks/ceiling.h"
#include "train/network_predictor.h"

namespace sb {
namespace {

RunData data_of(const std::vector<std::string>& overrides) {
  return make_data(test::small_config(overrides).values);
}

class ByTask : public testing::TestWithParam<int> {};

TEST_P(ByTask, ExactFilterReachesCeilingInEvaluation) {
  const RunData data = data_of({"task.number=" + std::to_string(GetParam()), "task.length=70", "grammar.vocab=9",
                                "grammar.ambiguities=8", "grammar.depth=5"});
  OraclePredictor filter(*data.task, Split::test);
  EvaluationRequest request;
  request.split = Split::test;
  request.samples = 60;
  request.batch = 16;
  const Evaluation result = evaluate(filter, *data.task, request);
  CeilingRequest ask;
  ask.samples = 60;
  const Ceiling ceiling = exact_ceiling(*data.task, ask);
  EXPECT_NEAR(result.elements.value(), ceiling.filter_accuracy, 1e-12);
  EXPECT_GT(result.elements.value(), 0.9);
}

INSTANTIATE_TEST_SUITE_P(Tasks, ByTask, testing::Values(1, 2, 3));

TEST(Evaluate, AgreesWithTheMetricOfCompleteLogits) {
  const ResolvedConfig config = test::small_config({"task.number=2"});
  const RunData data = make_data(config.values);
  Trainer trainer(config.values, data);
  Batch frames;
  data.task->fill(Split::test, 0, 6, frames);
  const TensorBatch batch = to_tensors(frames, *data.task, at::kFloat);
  const at::NoGradGuard no_grad;
  const at::Tensor logits = trainer.network().logits(batch.input).contiguous();
  MetricAccumulator metric(*data.task);
  metric.begin(frames);
  metric.logits(0, frames.frames, logits.data_ptr<float>());
  metric.end();
  const Evaluation complete = metric.result();
  NetworkPredictor predictor(trainer.network());
  EvaluationRequest request;
  request.split = Split::test;
  request.samples = 6;
  const Evaluation result = evaluate(predictor, *data.task, request);
  EXPECT_EQ(result.elements.value(), complete.elements.value());
  EXPECT_NEAR(result.loss, complete.loss, 1e-5);
  EXPECT_EQ(result.frames, complete.frames);
}

// Regression: comparisons with NaN are false, so every answer was "state 0", with a finite loss.
TEST(Evaluate, NaNOutputsHaveNoAccuracy) {
  const ResolvedConfig config = test::small_config({"task.number=2"});
  const RunData data = make_data(config.values);
  Trainer trainer(config.values, data);
  {
    const at::NoGradGuard no_grad;
    at::Tensor weights = trainer.network().parameters().flat();
    weights.fill_(std::nan(""));
  }
  NetworkPredictor predictor(trainer.network());
  EvaluationRequest request;
  request.samples = 4;
  EXPECT_THROW(evaluate(predictor, *data.task, request), NotFinite);
}

TEST(Evaluate, PollsForStopBetweenChunks) {
  const RunData data = data_of({"task.number=1"});
  OraclePredictor filter(*data.task, Split::test);
  EvaluationRequest request;
  request.samples = 2;
  request.batch = 2;
  request.chunk = 5;
  int asked = 0;
  request.stop = [&] { return ++asked > 3; };
  EXPECT_THROW(evaluate(filter, *data.task, request), Stopped);
}

TEST(Evaluate, ChunksEqualOnePass) {
  for (const auto& model : test::paper_models()) {
    const ResolvedConfig config = test::small_config({"task.number=2", "model.name=" + model, "train.precision=fp64"});
    const RunData data = make_data(config.values);
    Trainer trainer(config.values, data);
    NetworkPredictor predictor(trainer.network());
    EvaluationRequest request;
    request.split = Split::test;
    request.samples = 6;
    const Evaluation whole = evaluate(predictor, *data.task, request);
    request.chunk = 7;
    const Evaluation pieces = evaluate(predictor, *data.task, request);
    EXPECT_EQ(whole.elements.right, pieces.elements.right) << model;
    EXPECT_NEAR(whole.loss, pieces.loss, 1e-6) << model;
  }
}

TEST(Evaluate, BreakdownsCountEveryElementOnce) {
  const RunData data = data_of({"task.number=3", "task.length=80"});
  OraclePredictor filter(*data.task, Split::test);
  EvaluationRequest request;
  request.split = Split::test;
  request.samples = 20;
  request.breakdowns = true;
  const Evaluation result = evaluate(filter, *data.task, request);
  for (const auto* bins : {&result.by_position, &result.by_since_certain, &result.by_entropy}) {
    int64_t total = 0, right = 0;
    for (const Share& s : *bins) {
      total += s.total;
      right += s.right;
    }
    EXPECT_EQ(total, 20 * 80);
    EXPECT_EQ(right, result.elements.right);
  }
  int64_t frames = 0;
  for (const Share& s : result.by_gap_frame) frames += s.total;
  EXPECT_EQ(frames, result.frames);
}

TEST(Evaluate, ConfusionSplitsErrorsByRightAndWrongSymbol) {
  const RunData data = data_of({"task.number=1", "task.length=60"});
  OraclePredictor filter(*data.task, Split::test);
  EvaluationRequest request;
  request.split = Split::test;
  request.samples = 20;
  const Evaluation result = evaluate(filter, *data.task, request);
  int64_t right = 0, total = 0, other = 0;
  for (const Confusion& c : result.confusion) {
    right += c.right;
    other += c.other_symbol;
    total += c.right + c.same_symbol + c.other_symbol;
  }
  EXPECT_EQ(right, result.elements.right);
  EXPECT_EQ(total, result.elements.total);
  EXPECT_LT(right, total);  // ambiguous symbols leave the filter in doubt
  EXPECT_EQ(other, 0);      // but it sees which symbol is shown
}

// Regression: the last element has frames but no target, and was counted as correct.
TEST(Evaluate, PaddingCorrectIgnoresLastElementOfPrediction) {
  const ResolvedConfig config = test::small_config({"task.objective=predict"});
  const RunData data = make_data(config.values);
  Trainer trainer(config.values, data);
  NetworkPredictor predictor(trainer.network());
  EvaluationRequest request;
  request.samples = 10;
  const Evaluation plain = evaluate(predictor, *data.task, request);
  request.padding_correct = true;
  const Evaluation quirky = evaluate(predictor, *data.task, request);
  EXPECT_EQ(plain.elements.total, 10 * 19);
  EXPECT_EQ(quirky.elements.total, plain.elements.total);
  EXPECT_EQ(quirky.elements.right, plain.elements.right);
}

TEST(Evaluate, SameBytesForAnyThreadCount) {
  const ResolvedConfig config = test::small_config({"task.number=2"});
  const RunData data = make_data(config.values);
  Trainer trainer(config.values, data);
  NetworkPredictor predictor(trainer.network());
  EvaluationRequest request;
  request.samples = 9;
  request.batch = 4;
  std::vector<std::string> texts;
  for (const int threads : {1, 2, 4}) {
    at::set_num_threads(threads);
    Result result;
    result.test = measurement(evaluate(predictor, *data.task, request), request.split, *data.task, {}, true);
    texts.push_back(comparable_text(result));
  }
  at::set_num_threads(2);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
}

TEST(Evaluate, PredictObjectiveReportsDivergenceFromTrueDistribution) {
  const ResolvedConfig config = test::small_config({"task.objective=predict", "train.updates=60", "train.lr=1e-2"});
  const RunData data = make_data(config.values);
  Trainer trainer(config.values, data);
  EXPECT_EQ(trainer.network().config().outputs, 6);
  NetworkPredictor predictor(trainer.network());
  EvaluationRequest request;
  request.samples = 20;
  const double before = evaluate(predictor, *data.task, request).kl;
  Loader loader(data, Split::train, 4, 0, 60);
  for (int64_t u = 0; u < 60; ++u) trainer.step(to_tensors(loader.next(), *data.task, at::kFloat), u);
  const double after = evaluate(predictor, *data.task, request).kl;
  EXPECT_GT(before, 0.3);
  EXPECT_GT(after, 0);
  EXPECT_LT(after, 0.8 * before);
}

}  // namespace
}  // namespace sb
