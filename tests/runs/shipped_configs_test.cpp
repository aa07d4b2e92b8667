#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "model_rules.h"
#include "runs/suite.h"

namespace sb::test {
namespace {

const std::string configs = SB_SOURCE_DIR "/configs/";

Suite shipped(const std::string& name) {
  return read_suite(configs + name, {}, rules());
}

std::set<std::string> ids(const Suite& suite) {
  std::set<std::string> out;
  for (const auto& run : suite.runs) out.insert(run.run_id);
  return out;
}

TEST(ShippedConfigs, EveryOneResolves) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(configs)) {
    if (entry.path().extension() != ".toml") continue;
    EXPECT_EQ(error_line([&] { read_suite(entry.path().string(), {}, rules()); }), "") << entry.path();
    ++files;
  }
  EXPECT_GE(files, 10U);
}

TEST(ShippedConfigs, ThePaperGridsHaveThePapersSizes) {
  EXPECT_EQ(shipped("paper/main_table.toml").runs.size(), 3U * 7 * 3 * 2 * 4);
  EXPECT_EQ(shipped("paper/task1_complexity.toml").runs.size(), 7U * 7 * 3 * 2 * 4);
  const auto sizes = shipped("paper/task1_model_size.toml");
  EXPECT_EQ(sizes.runs.size(), (6U * 9 + 7) * 3 * 2 * 4);
  EXPECT_EQ(sizes.skipped, 3U * 2 * 4);
  EXPECT_EQ(sizes.merged, 3U * 2 * 4);
}

TEST(ShippedConfigs, TheRunsOfTheTasksAreThoseOfTheMainTable) {
  const auto table = ids(shipped("paper/main_table.toml"));
  const auto second = ids(shipped("paper/task2.toml"));
  for (const auto& id : ids(shipped("paper/task4.toml"))) EXPECT_TRUE(second.contains(id));
  for (const char* name : {"paper/task2.toml", "paper/task3.toml"})
    for (const auto& id : ids(shipped(name))) EXPECT_TRUE(table.contains(id)) << name;
}

TEST(ShippedConfigs, TheMambasHaveTheSizesBehindThePapersParameterCounts) {
  for (const auto& run : shipped("paper/main_table.toml").runs) {
    const auto& model = run.values.model;
    const int task = run.values.task.task.number;
    if (!model.name.starts_with("mamba")) continue;
    EXPECT_EQ(model.width, task == 2 ? 1152 : 1296);
    const bool small = task == 2 || task == 3;
    EXPECT_EQ(model.switches.contains("d_state"), model.name == "mamba2" && small);
  }
}

TEST(ShippedConfigs, TheAblationsCompareWhatTheyClaim) {
  EXPECT_EQ(shipped("ablations/complementary_gating.toml").runs.size(), 2U * 2 * 4);
  EXPECT_EQ(shipped("ablations/fast_forgetting.toml").runs.size(), 3U * 4 * 4);
  EXPECT_EQ(shipped("ablations/channel_mixing.toml").runs.size(), 5U * 4);
  for (const auto& run : shipped("ablations/fast_forgetting.toml").runs)
    EXPECT_EQ(run.values.task.task.test.min, run.values.task.task.train.max);
  for (const auto& run : shipped("ablations/complementary_gating.toml").runs)
    EXPECT_EQ(run.values.task.task.test.probability, 0.5);
}

}  // namespace
}  // namespace sb::test
