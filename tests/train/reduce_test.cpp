#include "train/reduce.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "small_run.h"
#include "train/gpu.h"
#include "train/network_predictor.h"

namespace sb {
namespace {

// All that a result takes of an evaluation, doubles to the last bit.
std::string text_of(const Evaluation& evaluation, const RunData& data) {
  Result result;
  result.test = measurement(evaluation, Split::test, *data.task, {}, true);
  std::string out = comparable_text(result);
  for (const auto* bins : {&evaluation.by_gap_frame, &evaluation.by_since_certain, &evaluation.by_entropy}) {
    for (const Share& s : *bins) out += " " + std::to_string(s.right) + "/" + std::to_string(s.total);
  }
  return out;
}

const std::vector<std::vector<std::string>>& tasks() {
  static const std::vector<std::vector<std::string>> all = {
      {"task.number=1"},
      {"task.number=2"},
      {"task.number=2", "task.test_gap_law=uniform", "task.test_gap_min=0", "task.test_gap_max=9"},
      {"task.number=3", "task.length=70"},
      {"task.number=2", "task.objective=predict"},
  };
  return all;
}

// Coarse logits: many probabilities are equal, and many sums.
at::Tensor coarse_logits(const Batch& batch, int answers, std::mt19937& random) {
  at::Tensor out = at::empty({batch.batch, batch.frames, answers}, at::kFloat);
  std::uniform_int_distribution<int> level(0, 3);
  for (int64_t i = 0; i < out.numel(); ++i) out.data_ptr<float>()[i] = static_cast<float>(level(random));
  return out;
}

std::vector<at::Device> devices() {
  std::vector<at::Device> all = {at::kCPU};
  if (has_gpu()) {
    prepare_gpu(false);
    all.emplace_back(at::kCUDA, at::DeviceIndex{0});
  }
  return all;
}

void stretches_give_the_same_metrics(const at::Device& device) {
  std::mt19937 random(5);
  for (const auto& overrides : tasks()) {
    const RunData data = make_data(test::small_config(overrides).values);
    const Task& task = *data.task;
    const int answers = task.shape().answers;
    const bool oracle = !data.task->has_law();
    for (const int longest : {1, 2, 7, 1000}) {
      MetricAccumulator plain(task, {false, oracle, 1}), reduced(task, {false, oracle, 2});
      for (const int first : {0, 5}) {
        Batch batch;
        task.fill(Split::test, static_cast<uint64_t>(first), 5, batch);
        const at::Tensor logits = coarse_logits(batch, answers, random).to(device);
        const at::Tensor probabilities = at::softmax(logits, -1).to(at::kCPU).contiguous();
        plain.begin(batch);
        plain.probabilities(0, batch.frames, probabilities.data_ptr<float>());
        plain.end();
        TensorReduction reduction(batch, task, device);
        std::uniform_int_distribution<int> some(1, longest);
        for (int from = 0, to = 0; from < batch.frames; from = to) {
          to = std::min(batch.frames, from + some(random));
          reduction.take(from, to, logits.narrow(1, from, to - from));
        }
        if (!device.is_cpu()) reduction.finish(gpu_marker());
        reduced.begin(batch);
        reduced.predictions(reduction.reduced());
        reduced.end();
      }
      EXPECT_EQ(text_of(plain.result(), data), text_of(reduced.result(), data)) << overrides.back() << " " << longest;
      EXPECT_GT(plain.result().elements.right, 0);
    }
  }
}

TEST(Reduce, ChunksOfAnyLengthGiveSameMetrics) {
  for (const at::Device& device : devices()) stretches_give_the_same_metrics(device);
}

TEST(Reduce, EvaluationsGiveSameBytes) {
  for (const auto& overrides : tasks()) {
    for (const char* precision : {"train.precision=fp32", "train.precision=fp64"}) {
      std::vector<std::string> all = overrides;
      all.emplace_back(precision);
      const ResolvedConfig config = test::small_config(all);
      const RunData data = make_data(config.values);
      Trainer trainer(config.values, data);
      EvaluationRequest request;
      request.split = Split::test;
      request.samples = 13;
      request.batch = 3;
      request.breakdowns = !data.task->has_law();
      NetworkPredictor plain(trainer.network()), reducing(trainer.network(), true);
      const std::string expected = text_of(evaluate(plain, *data.task, request), data);
      EXPECT_EQ(text_of(evaluate(reducing, *data.task, request), data), expected) << overrides.back();
      std::deque<Batch> kept;
      request.kept = &kept;
      for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(text_of(evaluate(reducing, *data.task, request), data), expected) << overrides.back();
        EXPECT_EQ(text_of(evaluate(plain, *data.task, request), data), expected) << overrides.back();
        EXPECT_EQ(kept.size(), 5U);
      }
    }
  }
}

// Compares with a copy of the GPU's own probabilities, if there is a GPU.
TEST(Reduce, EvaluationsOnGpuMatchItsProbabilities) {
  if (!has_gpu()) GTEST_SKIP() << gpu_facts().missing;
  for (const auto& overrides : tasks()) {
    for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::amp}) {
      ResolvedConfig config = test::small_config(overrides);
      config.values.train.device = DeviceKind::cuda;
      config.values.train.precision = precision;
      const RunData data = make_data(config.values);
      Trainer trainer(config.values, data);
      EvaluationRequest request;
      request.split = Split::test;
      request.samples = 13;
      request.batch = 3;
      NetworkPredictor reducing(trainer.network()), copying(trainer.network(), false);
      EXPECT_EQ(text_of(evaluate(reducing, *data.task, request), data),
                text_of(evaluate(copying, *data.task, request), data))
          << overrides.back() << " " << to_string(precision);
    }
  }
}

TEST(Reduce, NamesFirstNonFiniteFrame) {
  const RunData data = make_data(test::small_config({"task.number=2"}).values);
  const Task& task = *data.task;
  std::mt19937 random(6);
  Batch batch;
  task.fill(Split::test, 0, 4, batch);
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const at::Tensor logits = coarse_logits(batch, task.shape().answers, random);
    logits[2][31][1] = odd;
    logits[2][40][0] = odd;
    logits[3][3][0] = odd;
    MetricAccumulator metrics(task);
    metrics.begin(batch);
    TensorReduction reduction(batch, task, at::kCPU);
    reduction.take(0, 17, logits.narrow(1, 0, 17));
    reduction.take(17, batch.frames, logits.narrow(1, 17, batch.frames - 17));
    try {
      metrics.predictions(reduction.reduced());
      FAIL() << "counted";
    } catch (const NotFinite& seen) {
      EXPECT_EQ(seen.sample, 2);
      EXPECT_EQ(seen.frame, 31);
    }
  }
}

TEST(Reduce, PollsForStopBetweenBatches) {
  const RunData data = make_data(test::small_config().values);
  Trainer trainer(test::small_config().values, data);
  NetworkPredictor reducing(trainer.network(), true);
  EvaluationRequest request;
  request.samples = 9;
  request.batch = 2;
  int asked = 0;
  request.stop = [&] { return ++asked > 3; };
  EXPECT_THROW(evaluate(reducing, *data.task, request), Stopped);
  EXPECT_EQ(asked, 4);
}

}  // namespace
}  // namespace sb
