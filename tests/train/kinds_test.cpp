// Runs on tasks of other kinds: dense frames, squared error, masks, other test axes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/grad_mode.h>

#include "../base/temporary_folder.h"
#include "small_run.h"
#include "store/result_parts.h"
#include "store/run_check.h"
#include "train/loader.h"
#include "train/samples.h"

namespace sb {
namespace {

using test::content;
using test::TemporaryFolder;
using test::work;

ResolvedConfig kind_config(const std::string& kind, const std::vector<std::string>& overrides = {}) {
  Settings settings = parse_settings("task = {length = 6, kind = '" + kind + R"('}
model = {name = "gru", width = 16, layers = 1}
train = {updates = 12, batch = 4, warmup = 3}
eval = {every = 4, valid_samples = 10, test_samples = 12, grid_samples = 6, ceiling_samples = 12, batch = 5}
)",
                                     "kind.toml");
  add_overrides(settings, overrides);
  return resolve(settings, {}, "kind.toml");
}

TEST(SquaredError, GradientsAgreeWithFiniteDifferences) {
  const ResolvedConfig config = kind_config("tracking", {"train.precision=fp64"});
  const RunData data = make_data(config.values);
  Trainer trainer(config.values, data);
  Network& network = trainer.network();
  Batch frames;
  data.task->fill(Split::train, 0, 3, frames, 8);
  const TensorBatch batch = to_tensors(std::move(frames), *data.task, at::kDouble);
  at::Tensor target = batch.target.view({3, 8}).clone();
  target[1][2] = -1;  // not asked for
  const auto loss = [&] { return network.squared_error(batch.input, target, batch.value); };
  const at::Tensor at_start = loss();
  at_start.backward();
  const at::Tensor gradient = network.parameters().flat_grad().clone();
  const at::NoGradGuard no_grad;
  at::manual_seed(3);
  at::Tensor flat = network.parameters().flat();
  const at::Tensor before = flat.clone();
  for (int i = 0; i < 5; ++i) {
    constexpr double step = 1e-6;
    const at::Tensor direction = at::randn_like(flat);
    flat.copy_(before + step * direction);
    const double up = loss().item<double>();
    flat.copy_(before - step * direction);
    const double down = loss().item<double>();
    const double expected = (gradient * direction).sum().item<double>();
    EXPECT_NEAR((up - down) / (2 * step), expected, 1e-6 * (1 + std::abs(expected)));
  }
  flat.copy_(before);
  // By hand: the mean over the frames that are asked for.
  const at::Tensor off = (network.logits(batch.input) - batch.value).square().squeeze(-1);
  const at::Tensor asked = target.ge(0);
  EXPECT_EQ(asked.sum().item<int64_t>(), 3 * 6 - 1) << "padding and the one above are not";
  EXPECT_NEAR(at_start.item<double>(), (off * asked).sum().item<double>() / (3 * 6 - 1), 1e-12);
  EXPECT_THROW(network.squared_error(batch.input, target, batch.value.narrow(1, 0, 3)), Error);
}

// A task that asks for nothing in samples of odd index.
class HalfAsked final : public Task {
 public:
  explicit HalfAsked(std::shared_ptr<const Task> of) : of_(std::move(of)) {}
  TaskShape shape() const override { return of_->shape(); }
  std::string canonical_text() const override { return "half " + of_->canonical_text(); }
  int max_frames(Split split) const override { return of_->max_frames(split); }
  double mean_frames(Split split) const override { return of_->mean_frames(split); }
  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    of_->fill(split, samples, out, pad_to);
    std::fill(out.state.begin(), out.state.end(), -1);  // only answers() knows
  }
  void answers(const Batch& batch, int row, int32_t* out) const override {
    Batch again;
    of_->fill(batch.split, batch.samples[static_cast<size_t>(row)], 1, again);
    of_->answers(again, 0, out);
    if (batch.samples[static_cast<size_t>(row)] % 2 == 1) std::fill_n(out, batch.elements, -1);
  }

 private:
  std::shared_ptr<const Task> of_;
};

TEST(Masks, SharesOfABatchSumToItsGradient) {
  for (const char* kind : {"copying", "tracking"}) {
    const ResolvedConfig config = kind_config(kind, {"train.precision=fp64", "model.dropout=0"});
    const HalfAsked task(make_data(config.values).task);
    Trainer trainer(config.values, task.shape());
    Batch whole;
    task.fill(Split::train, std::vector<uint64_t>{1, 3, 4, 6}, whole, 0);
    const TensorBatch all = to_tensors(whole, task, at::kDouble);
    EXPECT_EQ(all.real_frames, 12) << "two samples of six";
    const auto gradient_of = [&](TensorBatch batch) {
      batch.real_frames = all.real_frames;
      trainer.prepare(batch.real_frames, 0);
      const double loss = trainer.gradients(batch, false).item<double>();
      return std::pair(loss, trainer.network().parameters().flat_grad().clone());
    };
    const auto [loss, gradient] = gradient_of(all);
    const auto [none, nothing] = gradient_of(to_tensors(rows_of(whole, 0, 2), task, at::kDouble));
    const auto [rest, others] = gradient_of(to_tensors(rows_of(whole, 2, 4), task, at::kDouble));
    EXPECT_EQ(none, 0) << "all of the first share is masked";
    EXPECT_EQ(nothing.abs().max().item<double>(), 0);
    EXPECT_NEAR(rest, loss, 1e-12);
    EXPECT_GT(gradient.abs().max().item<double>(), 1e-3);
    EXPECT_LT((others - gradient).abs().max().item<double>(), 1e-12) << kind;
  }
}

TEST(Masks, MicroBatchWithoutAnswersAddsNothing) {
  const ResolvedConfig config = kind_config(
      "copying", {"train.precision=fp64", "model.dropout=0", "quirks.sum_accumulated=true", "train.accumulate=2"});
  const HalfAsked task(make_data(config.values).task);
  Trainer trainer(config.values, task.shape());
  Batch whole;
  task.fill(Split::train, std::vector<uint64_t>{1, 3, 4, 6}, whole, 0);
  trainer.prepare(12, 0);
  EXPECT_TRUE(std::isfinite(trainer.gradients(to_tensors(whole, task, at::kDouble), false).item<double>()));
  EXPECT_GT(trainer.network().parameters().flat_grad().abs().max().item<double>(), 1e-3);
}

TEST(Masks, AnUpdateThatAsksForNothingIsAnError) {
  const ResolvedConfig config = kind_config("copying");
  const HalfAsked task(make_data(config.values).task);
  Trainer trainer(config.values, task.shape());
  Batch odd;
  task.fill(Split::train, std::vector<uint64_t>{1, 3}, odd, 0);
  EXPECT_THROW(trainer.step(to_tensors(odd, task, at::kFloat), 0), Error);
}

TEST(Masks, RecordsOfSamplesAskTheTask) {
  const ResolvedConfig config = kind_config("copying");
  const HalfAsked task(make_data(config.values).task);
  Trainer trainer(config.values, task.shape());
  const std::vector<SampleRecord> records = record_samples(trainer.network(), task, Split::test, 64);
  ASSERT_GE(records.size(), 2U);
  Batch batch;
  std::vector<int32_t> answers(12);
  for (const SampleRecord& record : records) {
    task.fill(Split::test, static_cast<uint64_t>(record.index), 1, batch);
    task.answers(batch, 0, answers.data());
    for (size_t e = 0; e < record.elements.size(); ++e) {
      EXPECT_EQ(record.elements[e].state, answers[e]);
      EXPECT_EQ(record.elements[e].network.empty(), answers[e] < 0);
    }
  }
}

TEST(Loader, DenseFramesAndValuesAreThoseOfTheBatch) {
  const RunData data = make_data(kind_config("tracking").values);
  Batch frames;
  data.task->fill(Split::train, 5, 2, frames);
  const std::vector<float> dense = frames.dense, value = frames.value;
  const Batch second = rows_of(frames, 1, 2);
  EXPECT_EQ(second.dense, std::vector<float>(dense.begin() + 12, dense.end()));
  EXPECT_EQ(second.value, std::vector<float>(value.begin() + 6, value.end()));
  const TensorBatch batch = to_tensors(std::move(frames), *data.task, at::kFloat);
  EXPECT_TRUE(at::equal(batch.input.flatten(), at::tensor(dense)));
  EXPECT_TRUE(at::equal(batch.value.flatten(), at::tensor(value)));
  EXPECT_EQ(batch.real_frames, 12);
}

TEST(Kinds, AnInterruptedRunEndsInTheSameBytes) {
  for (const auto& [kind, axis] : {std::pair{"copying", "eval.lengths=[4, 9]"}, {"tracking", "eval.missing=[0, 80]"}}) {
    const ResolvedConfig config = kind_config(kind, {axis});
    const TemporaryFolder at_once, in_parts;
    ASSERT_EQ(work(config, at_once.path()), RunStatus::done);
    int64_t stop_after = 3;
    TrainHooks hooks;
    int64_t done = 0;
    hooks.progress = [&](const TrainProgress& p) { done = p.update; };
    hooks.stop = [&] { return done >= stop_after; };
    for (; stop_after < 12; stop_after += 4) ASSERT_EQ(work(config, in_parts.path(), hooks), RunStatus::stopped);
    ASSERT_EQ(work(config, in_parts.path()), RunStatus::done);
    for (const char* name : {"metrics.jsonl", "final.safetensors"})
      EXPECT_EQ(content(at_once.path(), config, name), content(in_parts.path(), config, name)) << kind << " " << name;
    const Result result = load_result(at_once.path() + "/" + config.run_id);
    EXPECT_EQ(comparable_text(result), comparable_text(load_result(in_parts.path() + "/" + config.run_id)));
    EXPECT_TRUE(verify_run(at_once.path() + "/" + config.run_id).empty());
    EXPECT_EQ(task_name(result), kind);
    ASSERT_EQ(result.grid.size(), 2U);
    EXPECT_EQ(result.grid[1].axis_name(), kind == std::string("copying") ? "length" : "missing");
    EXPECT_FALSE(result.baselines);
    ASSERT_TRUE(result.test && result.test->ceiling);
    const bool squared = kind == std::string("tracking");
    EXPECT_EQ(result.test->mse.has_value(), squared);
    if (squared) {
      EXPECT_GT(*result.test->mse, *result.test->ceiling->mse);
      EXPECT_LT(*result.grid[0].ceiling->mse, *result.grid[1].ceiling->mse);
      EXPECT_EQ(accuracy_text(*result.test).find("mean squared error "), 0U);
      EXPECT_EQ(accuracy_text(*result.test).find("accuracy"), std::string::npos);
    } else {
      EXPECT_EQ(result.test->elements, 12 * 6) << "the second half";
      EXPECT_DOUBLE_EQ(result.test->ceiling->accuracy, 1);
      ASSERT_EQ(result.samples.size(), 3U);
      EXPECT_TRUE(result.samples[0].elements[0].network.empty()) << "not asked for";
      EXPECT_FALSE(result.samples[0].elements[6].network.empty());
      EXPECT_EQ(result.samples[0].elements[6].filter.at(0).state, result.samples[0].elements[6].state);
    }
  }
}

TEST(Kinds, ALongerTrainingApproachesTheBound) {
  const ResolvedConfig config =
      kind_config("tracking", {"train.updates=300", "train.warmup=20", "train.lr=1e-2", "train.batch=16",
                               "task.length=20", "eval.every=0", "eval.test_samples=200", "eval.ceiling_samples=200"});
  const TemporaryFolder root;
  ASSERT_EQ(work(config, root.path()), RunStatus::done);
  const Result result = load_result(root.path() + "/" + config.run_id);
  EXPECT_LT(*result.test->mse, 1.35 * *result.test->ceiling->mse);
}

}  // namespace
}  // namespace sb
