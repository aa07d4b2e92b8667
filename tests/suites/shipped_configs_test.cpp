#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <regex>
#include <set>

#include "../config/model_rules.h"
#include "base/file.h"
#include "suites/suite.h"

namespace sb::test {
namespace {

const std::string configs = SB_SOURCE_DIR "/configs/";

// Scales are parts of suites, experiments suites with scales (experiment_test.cpp), and rates no suite at all.
bool stands_alone(const std::filesystem::path& path) {
  const std::string folder = path.parent_path().filename().string();
  return path.extension() == ".toml" && folder != "experiments" && folder != "scales" &&
         path.filename() != "rates.toml";
}

Suite shipped(const std::string& name) {
  return read_suite(configs + name, {}, rules());
}

std::set<std::string> ids(const Suite& suite) {
  std::set<std::string> out;
  for (const auto& run : suite.runs) out.insert(run.run_id);
  return out;
}

TEST(ShippedConfigs, Resolve) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(configs)) {
    if (!stands_alone(entry.path())) continue;
    const std::string error = error_line([&] { read_suite(entry.path().string(), {}, rules()); });
    if (entry.path().stem() == "text")  // its user names the file
      EXPECT_TRUE(error.starts_with("[task.file] expected the path of a file")) << error;
    else
      EXPECT_EQ(error, "") << entry.path();
    ++files;
  }
  EXPECT_GE(files, 10U);
}

TEST(ShippedConfigs, PaperGridsHaveSizesOfPaper) {
  EXPECT_EQ(shipped("paper/main_table.toml").runs.size(), 3U * 7 * 3 * 2 * 4);
  EXPECT_EQ(shipped("paper/task1_complexity.toml").runs.size(), 7U * 7 * 3 * 2 * 4);
  const auto sizes = shipped("paper/task1_model_size.toml");
  EXPECT_EQ(sizes.runs.size(), (6U * 9 + 7) * 3 * 2 * 4);
  EXPECT_EQ(sizes.skipped, 3U * 2 * 4);
  EXPECT_EQ(sizes.merged, 3U * 2 * 4);
}

TEST(ShippedConfigs, TaskRunsAreSubsetOfMainTable) {
  const auto table = ids(shipped("paper/main_table.toml"));
  const auto second = ids(shipped("paper/task2.toml"));
  for (const auto& id : ids(shipped("paper/task4.toml"))) EXPECT_TRUE(second.contains(id));
  for (const char* name : {"paper/task2.toml", "paper/task3.toml"})
    for (const auto& id : ids(shipped(name))) EXPECT_TRUE(table.contains(id)) << name;
  const auto small = ids(shipped("cpu/main_table.toml"));
  for (const char* name : {"cpu/task2.toml", "cpu/task3.toml", "cpu/task4.toml"})
    for (const auto& id : ids(shipped(name))) EXPECT_TRUE(small.contains(id)) << name;
}

TEST(ShippedConfigs, PaperAndAblationSuitesHaveCpuVersion) {
  for (const char* folder : {"paper", "ablations"})
    for (const auto& entry : std::filesystem::directory_iterator(configs + folder)) {
      const std::string twin = configs + "cpu/" + entry.path().filename().string();
      EXPECT_TRUE(std::filesystem::exists(twin)) << twin;
      if (!is_suite(read_config_text(twin), twin)) continue;
      for (const auto& run : read_suite(twin, {}, rules()).runs) {
        EXPECT_EQ(run.values.train.device, DeviceKind::cpu) << twin;
        EXPECT_LE(run.values.train.updates, 1000) << twin;
      }
    }
}

// Frames the run trains on, on average over the gap law.
double training_frames(const RunConfig& c) {
  const GapConfig& gap = c.task.task.train;
  double mean = 0;
  const std::vector<double> law = gap_length_law(gap);
  for (size_t n = 0; n < law.size(); ++n) mean += static_cast<double>(n) * law[n];
  if (gap.law == GapLaw::none) mean = 0;
  const double gapped = gap.probability * std::max(0, c.task.length - gap.start);
  return static_cast<double>(c.train.updates) * c.train.batch * (c.task.length + gapped * mean);
}

TEST(ShippedConfigs, SuitesStateTheirCost) {
  const std::regex line(
      "# Cost: ([0-9,]+) runs, ([0-9,]+) updates, ([0-9.]+) (M|G) training frames; "
      "estimate: ([^\n]*) on two cores(, [^\n]* on a GPU)?\\.\n");
  const auto number = [](std::string text) {
    std::erase(text, ',');
    return std::stod(text);
  };
  size_t suites = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(configs)) {
    if (!stands_alone(entry.path())) continue;
    const std::string text = read_config_text(entry.path().string());
    if (!is_suite(text, entry.path().string())) continue;
    ++suites;
    std::smatch found;
    ASSERT_TRUE(std::regex_search(text, found, line)) << entry.path();
    EXPECT_LT(found.position(), static_cast<ptrdiff_t>(text.find("[suite]"))) << entry.path();
    double updates = 0, frames = 0;
    const Suite suite = read_suite(entry.path().string(), {}, rules());
    for (const auto& run : suite.runs) {
      updates += static_cast<double>(run.values.train.updates);
      frames += training_frames(run.values);
    }
    EXPECT_EQ(number(found[1]), static_cast<double>(suite.runs.size())) << entry.path();
    EXPECT_EQ(number(found[2]), updates) << entry.path();
    EXPECT_NEAR(number(found[3]) * (found[4] == "G" ? 1e9 : 1e6), frames, 0.01 * frames) << entry.path();
  }
  EXPECT_GE(suites, 20U);
}

TEST(ShippedConfigs, MambasHaveSizesOfPaperParameterCounts) {
  for (const auto& run : shipped("paper/main_table.toml").runs) {
    const auto& model = run.values.model;
    const int task = run.values.task.task.number;
    if (!model.name.starts_with("mamba")) continue;
    EXPECT_EQ(model.width, task == 2 ? 1152 : 1296);
    const bool small = task == 2 || task == 3;
    EXPECT_EQ(model.switches.contains("d_state"), model.name == "mamba2" && small);
  }
}

TEST(ShippedConfigs, AblationsHaveExpectedRunsAndTasks) {
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
