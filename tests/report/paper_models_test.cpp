// With the rules of the real models, whose run ids hold every switch: the paper's networks are the registry's, and the
// tables of the shipped suites read as without them.
#include <gtest/gtest.h>

#include <set>

#include "report/labels.h"
#include "report/table.h"
#include "synthetic.h"
#include "train/rules.h"

namespace sb::test {
namespace {

Suite real(const std::string& name) {
  return read_suite(SB_SOURCE_DIR "/configs/" + name, {}, model_rules());
}

TEST(RealRules, AnyChangedSwitchRemovesPaperFigure) {
  for (const auto& run : real("paper/main_table.toml").runs) {
    const Result result = result_of(run);
    ASSERT_TRUE(paper_figure(result).has_value()) << run.canonical;
    size_t switches = 0;
    for (const auto& [key, value] : result.config) {
      if (!key.starts_with("model.switch ")) continue;
      Result other = result;
      other.config[key] = value == "\"on\"" ? "\"off\"" : value == "\"off\"" ? "\"on\"" : "\"3\"";
      EXPECT_FALSE(paper_figure(other).has_value()) << run.values.model.name << " " << key;
      ++switches;
    }
    EXPECT_GT(switches, 2U);
  }
  for (const auto& run : real("paper/published_faults.toml").runs)
    EXPECT_TRUE(paper_figure(result_of(run)).has_value()) << run.canonical;
  for (const char* name : {"quick.toml", "ablations/channel_mixing.toml", "ablations/complementary_gating.toml",
                           "ablations/fast_forgetting.toml"})
    for (const auto& run : real(name).runs) EXPECT_FALSE(paper_figure(result_of(run)).has_value()) << run.canonical;
}

TEST(RealRules, ShippedTablesShowOnlyTheirAxes) {
  const auto names = [](const std::string& suite) {
    std::vector<std::string> out;
    for (const auto& axis : make_labels(rows_of(real(suite)).groups).rows) out.push_back(axis.name());
    return out;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("quick.toml"), (Names{"model", "width"}));
  EXPECT_EQ(names("paper/task1_complexity.toml"), (Names{"model", "width"}));
  EXPECT_EQ(names("paper/task1_model_size.toml"), (Names{"model", "width"}));
  EXPECT_EQ(names("paper/main_table.toml"), (Names{"model", "width", "d_state"}));
  EXPECT_EQ(names("ablations/fast_forgetting.toml"), (Names{"model", "width", "a_min"}));
  EXPECT_EQ(names("ablations/channel_mixing.toml"), (Names{"model", "width", "mlp"}));
  EXPECT_EQ(rows_of(real("paper/task1_complexity.toml")).groups.size(), 49U);
  const Suite faults = real("paper/published_faults.toml");
  EXPECT_EQ(rows_of(faults).groups.size(), faults.runs.size() / 4);
}

TEST(RealRules, DefaultSwitchesAreNotListed) {
  const ModelRules rules = model_rules();
  std::set<std::string> models;
  for (const auto& row : rules.table) models.insert(row.model);
  EXPECT_GT(models.size(), 10U);
  const auto common = [&](const std::string& text) {
    const Suite suite = parse_suite(text, "suite.toml", {}, rules);
    std::vector<std::string> keys;
    for (const auto& [key, value] : make_labels(rows_of(suite).groups, defaults_of(rules)).common) keys.push_back(key);
    return keys;
  };
  for (const auto& model : models)
    for (const char* width : {"256", "768"})
      EXPECT_TRUE(common("[model]\nname = '" + model + "'\nwidth = " + width + "\n").empty()) << model << " " << width;
  EXPECT_EQ(common("[model]\nname = 'mamba2'\nd_state = 16\nlayers = 2\n"),
            (std::vector<std::string>{"model.switch d_state", "model.layers"}));
}

}  // namespace
}  // namespace sb::test
