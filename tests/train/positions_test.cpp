// train.position_stretch: which positions training samples get, and which runs they change.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../base/temporary_folder.h"
#include "config/data.h"
#include "small_run.h"
#include "train/rules.h"

namespace sb {
namespace {

using test::lasting_bytes;
using test::small_config;
using test::TemporaryFolder;
using test::work;

std::vector<int32_t> row_of(const at::Tensor& positions, int64_t row, int frames) {
  const int32_t* first = positions.data_ptr<int32_t>() + row * positions.size(1);
  return {first, first + frames};
}

Batch noisy_batch(const std::vector<uint64_t>& samples, int pad_to = 0) {
  const RunData data = make_data(small_config({"task.number=2"}).values);
  Batch out;
  data.task->fill(Split::train, samples, out, pad_to);
  return out;
}

TEST(RandomPositions, AscendWithinTheStretchedSample) {
  const Batch batch = noisy_batch({0, 1, 2, 3, 4, 5, 6, 7});
  const at::Tensor positions = random_positions(batch, 10, 1);
  std::set<std::vector<int32_t>> different;
  int32_t spread = 0;
  for (int b = 0; b < batch.batch; ++b) {
    const int frames = batch.real_frames(b);
    const auto row = row_of(positions, b, frames);
    EXPECT_GE(row.front(), 0);
    EXPECT_LT(row.back(), 10 * frames);
    EXPECT_EQ(std::adjacent_find(row.begin(), row.end(), std::greater_equal<>()), row.end()) << "ascending";
    different.insert(row);
    spread = std::max(spread, row.back() / frames);
    for (int t = frames; t < batch.frames; ++t) EXPECT_EQ(positions[b][t].item<int32_t>(), 0);
  }
  EXPECT_EQ(different.size(), 8U);
  EXPECT_GE(spread, 5) << "some sample has a long range";
}

TEST(RandomPositions, ArePlainWithoutStretch) {
  const Batch batch = noisy_batch({3});
  const auto row = row_of(random_positions(batch, 1, 1), 0, batch.real_frames(0));
  for (size_t t = 0; t < row.size(); ++t) EXPECT_EQ(row[t], static_cast<int32_t>(t));
}

// Neither the other samples of a batch nor its padding change the positions of a sample.
TEST(RandomPositions, DependOnSeedAndSampleAlone) {
  const Batch alone = noisy_batch({5}), among = noisy_batch({9, 5, 2}, 400);
  const int frames = alone.real_frames(0);
  ASSERT_EQ(among.real_frames(1), frames);
  EXPECT_EQ(row_of(random_positions(alone, 10, 1), 0, frames), row_of(random_positions(among, 10, 1), 1, frames));
  EXPECT_NE(row_of(random_positions(alone, 10, 1), 0, frames), row_of(random_positions(alone, 10, 2), 0, frames));
}

// All subsets of a range are equally likely: each position is taken equally often.
TEST(RandomPositions, TakeEveryPositionEquallyOften) {
  constexpr int samples = 4000, frames = 8, stretch = 2;
  Batch batch;
  batch.batch = samples;
  batch.frames = frames;
  batch.elements = 1;
  for (uint64_t i = 0; i < samples; ++i) {
    batch.samples.push_back(i);
    batch.start.insert(batch.start.end(), {0, frames});
  }
  const at::Tensor positions = random_positions(batch, stretch, 7);
  std::vector<int> taken(stretch * frames);
  for (int b = 0; b < samples; ++b)
    for (const int32_t position : row_of(positions, b, frames)) ++taken.at(static_cast<size_t>(position));
  for (int p = 0; p < stretch * frames; ++p) {
    double expected = 0;  // over ranges of 8 to 16 positions
    for (int range = frames; range <= stretch * frames; ++range)
      if (p < range) expected += static_cast<double>(frames) / range / (frames * (stretch - 1) + 1);
    EXPECT_NEAR(static_cast<double>(taken[static_cast<size_t>(p)]) / samples, expected, .04) << p;
  }
}

const std::vector<std::string> stretched = {"model.name=transformer", "task.number=2", "train.position_stretch=10"};

TEST(RandomPositions, RunResumesToSameBytes) {
  const ResolvedConfig config = small_config(stretched);
  const TemporaryFolder clean, broken;
  ASSERT_EQ(work(config, clean.path()), RunStatus::done);
  int stops = 0;
  const auto stop_after = [](int polls) {
    TrainHooks hooks;
    hooks.stop = [left = std::make_shared<int>(polls)] { return --*left < 0; };
    return hooks;
  };
  while (work(config, broken.path(), stop_after(3 + stops)) == RunStatus::stopped) ASSERT_LT(++stops, 100);
  EXPECT_GT(stops, 2);
  EXPECT_EQ(lasting_bytes(clean.path(), config), lasting_bytes(broken.path(), config));
}

// A learning rate too small to change any weight: losses of training differ, evaluations do not.
TEST(RandomPositions, EvaluationHasPlainPositions) {
  auto still = stretched;
  still.insert(still.end(), {"train.lr=1e-30", "model.dropout=0"});
  auto plain = still;
  plain[2] = "train.position_stretch=1";
  const ResolvedConfig a = small_config(still), b = small_config(plain);
  const TemporaryFolder root;
  ASSERT_EQ(work(a, root.path()), RunStatus::done);
  ASSERT_EQ(work(b, root.path()), RunStatus::done);
  const Result with = load_result(root.path() + "/" + a.run_id), without = load_result(root.path() + "/" + b.run_id);
  EXPECT_EQ(with.test->loss, without.test->loss);
  EXPECT_EQ(with.valid->loss, without.valid->loss);
  EXPECT_NE(test::content(root.path(), a, "metrics.jsonl"), test::content(root.path(), b, "metrics.jsonl"));
}

// Rows of ranks and micro-batches keep their positions.
TEST(RandomPositions, MicroBatchesHaveTheSameGradients) {
  const ResolvedConfig config = small_config({"model.name=transformer", "task.number=2", "model.dropout=0",
                                              "train.position_stretch=10", "train.precision=fp64"});
  const RunData data = make_data(config.values);
  Trainer trainer(config.values, data);
  Batch frames;
  data.task->fill(Split::train, 0, 4, frames);
  TensorBatch batch = to_tensors(std::move(frames), *data.task, at::kDouble);
  trainer.prepare(batch.real_frames, 0);
  const auto gradient = [&](int64_t micro_batches) {
    trainer.gradients(batch, false, micro_batches);
    return trainer.network().parameters().flat_grad().clone();
  };
  const at::Tensor plain = gradient(1);
  batch.positions = random_positions(batch.frames, 10, 1);
  const at::Tensor whole = gradient(1);
  EXPECT_TRUE(at::allclose(whole, gradient(4), 1e-9, 1e-12));
  EXPECT_FALSE(at::allclose(whole, plain, 1e-3, 1e-6));
}

TEST(RandomPositions, RejectModelsWithoutPositions) {
  const auto fault = [](const std::string& model) {
    try {
      resolve_config_text("", "x.toml", {"model.name=" + model, "train.position_stretch=2"}, model_rules());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault("transformer"), "");
  EXPECT_TRUE(fault("gla").starts_with("[train.position_stretch] gla has no positions, expected 1, got 2, --set"))
      << fault("gla");
}

}  // namespace
}  // namespace sb
