// The paper's networks are the registry's: a run that spells out every switch of its model keeps the paper's figure.
#include <gtest/gtest.h>

#include "models/options.h"
#include "models/registry.h"
#include "synthetic.h"

namespace sb::test {
namespace {

TEST(PaperModels, EverySwitchOfTheRegistryIsAsInThePaper) {
  size_t runs = 0;
  for (const auto& run : shipped("paper/main_table.toml").runs) {
    const ModelSection& model = run.values.model;
    Result result = result_of(run);
    const ModelConfig built = model_config(model.name, model.width, model.switches);
    for (const auto& name : find_model(model.name).switches)
      result.config["model.switch " + name] = "\"" + switch_value(built.mixer, name) + "\"";
    EXPECT_TRUE(paper_figure(result).has_value()) << model.name << " " << run.values.task.task.number;
    for (const auto& name : find_model(model.name).switches) {
      if (name == "double_residual") continue;
      Result other = result;
      const std::string value = switch_value(built.mixer, name);
      other.config["model.switch " + name] = value == "on" ? "\"off\"" : value == "off" ? "\"on\"" : "\"3\"";
      EXPECT_FALSE(paper_figure(other).has_value()) << model.name << " " << name;
    }
    ++runs;
  }
  EXPECT_EQ(runs, 504U);
}

}  // namespace
}  // namespace sb::test
