#include <gtest/gtest.h>

#include <set>

#include "../base/temporary_folder.h"
#include "small_run.h"
#include "train/schedule.h"

namespace sb {
namespace {

using test::small_config;
using test::TemporaryFolder;

std::vector<StepFigures> steps(const ResolvedConfig& config, int64_t count, at::Tensor* weights = nullptr) {
  const RunData data = make_data(config.values);
  Trainer trainer(config.values, data);
  Loader loader(data, Split::train, config.values.train.batch, 0, count);
  std::vector<StepFigures> out;
  for (int64_t u = 0; u < count; ++u)
    out.push_back(trainer.step(to_tensors(loader.next(), *data.task, at::kFloat), u).read());
  if (weights) *weights = trainer.network().parameters().flat().clone();
  return out;
}

TEST(Quirks, DeltaBf16FreezesGainsOfDeltaFamilyOnly) {
  for (const auto& [model, frozen] : {std::pair{"gated_delta_net", true}, {"mamba2", false}}) {
    const ResolvedConfig config = small_config({std::string("model.name=") + model, "quirks.delta_bf16=true"});
    const RunData data = make_data(config.values);
    Trainer trainer(config.values, data);
    Loader loader(data, Split::train, 4, 0, 12);
    for (int64_t u = 0; u < 12; ++u) trainer.step(to_tensors(loader.next(), *data.task, at::kFloat), u);
    const at::Tensor gain = trainer.network().parameters().find("norms.0.weight")->value;
    EXPECT_EQ(gain.eq(1).all().item<bool>(), frozen) << model;
  }
}

TEST(Trainer, DropoutStopsAtDropoutUntil) {
  const auto stopped = steps(small_config({"train.dropout_until=4"}), 8), throughout = steps(small_config(), 8);
  for (int u = 0; u < 4; ++u) EXPECT_EQ(stopped[u].loss, throughout[u].loss) << u;
  EXPECT_NE(stopped[4].loss, throughout[4].loss);
  const auto never = steps(small_config({"train.dropout_until=0"}), 2),
             without = steps(small_config({"model.dropout=0"}), 2);
  EXPECT_EQ(never[1].loss, without[1].loss);
}

TEST(Quirks, SumAccumulatedMultipliesGradient) {
  const std::vector<std::string> common = {"train.accumulate=4", "train.clip=0", "model.dropout=0"};
  auto quirk = common;
  quirk.emplace_back("quirks.sum_accumulated=true");
  const auto sound = steps(small_config(common), 1), quirky = steps(small_config(quirk), 1);
  EXPECT_NEAR(quirky[0].norm / sound[0].norm, 4, 0.01);
}

TEST(Trainer, AccumulationDoesNotChangeUpdates) {
  for (const std::string dropout : {"0", "0.3"}) {
    const std::vector<std::string> common{"model.dropout=" + dropout, "task.number=2"};
    const auto whole = steps(small_config(common), 3);
    for (const char* accumulate : {"train.accumulate=2", "train.accumulate=4"}) {
      auto cut = common;
      cut.emplace_back(accumulate);
      const auto parts = steps(small_config(cut), 3);
      for (int u = 0; u < 3; ++u) {
        EXPECT_NEAR(whole[u].loss, parts[u].loss, 1e-5) << dropout << " " << accumulate;
        EXPECT_NEAR(whole[u].norm, parts[u].norm, 1e-4 * whole[u].norm) << dropout << " " << accumulate;
      }
    }
  }
}

TEST(Quirks, FirstLrZeroKeepsWeightsAtUpdateZero) {
  at::Tensor quirky, sound, initial;
  steps(small_config({"quirks.first_lr_zero=true"}), 1, &quirky);
  steps(small_config(), 1, &sound);
  steps(small_config(), 0, &initial);
  EXPECT_TRUE(at::equal(quirky, initial));
  EXPECT_FALSE(at::equal(sound, initial));
}

TEST(Trainer, ResidualVariantsDiffer) {
  for (const char* model : {"transformer", "gla"}) {
    std::set<double> losses;
    for (const char* residual : {"post", "double", "pre"})
      losses.insert(
          steps(small_config({std::string("model.name=") + model, std::string("model.residual=") + residual}), 1)
              .front()
              .loss);
    EXPECT_EQ(losses.size(), 3U) << model;
  }
}

TEST(Quirks, SelectOnTestUsesTestSet) {
  const RunData quirky = make_data(small_config({"quirks.select_on_test=true"}).values);
  EXPECT_EQ(quirky.select, Split::test);
  EXPECT_EQ(make_data(small_config().values).select, Split::valid);
}

// All samples of a task have the same number of elements, so no number could change: the run id is the same.
TEST(Quirks, PaddingCorrectHasNoEffectInRuns) {
  const ResolvedConfig config = small_config({"quirks.padding_correct=true"});
  EXPECT_EQ(config.run_id, small_config().run_id);
  EXPECT_TRUE(config.keys_without_effect.contains("quirks.padding_correct"));
}

}  // namespace
}  // namespace sb
