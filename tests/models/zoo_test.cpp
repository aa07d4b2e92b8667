// What a model is stands in its own file; the modules around it ask its row.
#include "zoo.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/model_facts.h"
#include "models/declare.h"

namespace sb {
namespace {

TEST(Zoo, NamesModelsOnlyInTheirOwnFiles) {
  // Recorded recurrences and operations have names too, some of them those of models.
  const std::set<std::string> exempt = {"calls.cpp", "verify_core.cpp"};
  size_t files = 0;
  for (const char* module : {"kernels", "models", "train"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(SB_SOURCE_DIR "/src/" + std::string(module))) {
      const auto& path = entry.path();
      if (!entry.is_regular_file() || path.parent_path().filename() == "mixers" || exempt.contains(path.filename()))
        continue;
      std::ostringstream text;
      text << std::ifstream(path).rdbuf();
      for (const auto& name : model_names())
        EXPECT_EQ(text.str().find('"' + name + '"'), std::string::npos) << path << " names " << name;
      ++files;
    }
  EXPECT_GT(files, 50u);
}

TEST(Zoo, SwitchesHaveUniqueNamesAndDescriptions) {
  for (const auto& row : registry()) {
    std::set<std::string> names;
    for (const auto& each : row.switches) {
      EXPECT_TRUE(names.insert(each.name()).second) << row.name << " has " << each.name() << " twice";
      EXPECT_FALSE(each.meaning().empty() || each.range().empty()) << row.name << " " << each.name();
      EXPECT_FALSE(test::trial_values(each).empty()) << row.name << " " << each.name();
    }
  }
}

std::set<std::string> slow_parameters(const std::string& model) {
  std::set<std::string> out;
  const Declared built = declare(model_config(model, 16, {}, 1));
  for (const auto& parameter : built.parameters.all())
    if (parameter.group != LearningGroup{}) {
      EXPECT_EQ(parameter.group.max_lr, 1e-3);
      EXPECT_FALSE(parameter.group.decay);
      out.insert(parameter.name);
    }
  return out;
}

TEST(Zoo, S4TimeConstantsLearnSlowlyWithoutDecay) {
  EXPECT_EQ(slow_parameters("s4"),
            (std::set<std::string>{"layers.0.kernel.log_dt", "layers.0.kernel.log_A_real", "layers.0.kernel.A_imag"}));
  EXPECT_TRUE(slow_parameters("mamba").empty());
}

TEST(Zoo, HasExpectedTraits) {
  std::set<std::string> bf16, own_mlp;
  for (const auto& row : registry()) {
    if (model_facts(row.name).published_in_bf16) bf16.insert(row.name);
    if (row.traits.has_mlp) own_mlp.insert(row.name);
  }
  EXPECT_EQ(bf16, (std::set<std::string>{"delta_net", "gated_delta_net", "gated_delta_product"}));
  EXPECT_EQ(own_mlp, std::set<std::string>{"transformer"});
}

}  // namespace
}  // namespace sb
