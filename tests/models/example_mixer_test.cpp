#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/torch_pch.h"
#include "models/network.h"
#include "models/ops.h"
#include "models/probe.h"

namespace sb {

ModelRow leaky_integrator_row();

namespace {

// The one line that makes it a model, unless the zoo has it; before the tests, so that every suite over model_names()
// includes it.
const bool registered = [] {
  const auto names = model_names();
  if (std::find(names.begin(), names.end(), "leaky_integrator") == names.end()) register_model(leaky_integrator_row());
  return true;
}();

TEST(ExampleMixer, TrainsWithForwardOnly) {
  ASSERT_TRUE(registered);
  Network network(model_config("leaky_integrator", 32, {}, 2, 4, 4, 0));
  network.initialise(1);
  at::manual_seed(1);
  const auto symbols = at::randint(4, {8, 30}, at::kLong);
  const auto x = at::one_hot(symbols, 4).to(at::kFloat);
  const auto target = at::cat({symbols.narrow(1, 0, 1), symbols.narrow(1, 0, 29)}, 1);  // the symbol before
  auto& parameters = network.parameters();
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    parameters.flat_grad().zero_();
    const auto loss = network.loss(x, target);
    loss.backward();
    last = loss.item<double>();
    if (step == 0) first = last;
    const at::NoGradGuard no_gradients;
    parameters.flat().add_(parameters.flat_grad(), -0.5);
  }
  EXPECT_LT(last, 0.7 * first);
}

TEST(ExampleMixer, MatchesItsDeclaredTaxonomy) {
  const Measured measured = probe("leaky_integrator");
  EXPECT_EQ(measured.row.action, Taxonomy::Action::elementwise);
  EXPECT_EQ(measured.row, declared_row("leaky_integrator"))
      << measured.smallest_decay << " " << measured.write_forget_correlation;
}

TEST(ExampleMixer, SwitchIsSetByNameAndChangesOutput) {
  const auto output = [](const Switches& switches) {
    Network network(model_config("leaky_integrator", 8, switches, 1, 4, 4, 0));
    network.initialise(1);
    const at::NoGradGuard no_gradients;
    return network.logits(at::ones({1, 5, 4}));
  };
  EXPECT_TRUE(at::equal(output({}), output({{"sharpness", "1"}})));
  EXPECT_FALSE(at::equal(output({}), output({{"sharpness", "4"}})));
  EXPECT_THROW(output({{"sharpness", "0"}}), Error);
  EXPECT_THROW(model_config("gla", 16, {{"sharpness", "4"}}), Error);
}

TEST(ExampleMixer, LayersKnowTheirIndexAndParametersTheirGroup) {
  Network network(model_config("leaky_integrator", 8, {}, 3, 4, 4, 0));
  network.initialise(1);
  for (const int layer : {0, 1, 2}) {
    const Param bias = network.parameters().find("layers." + std::to_string(layer) + ".gate.bias");
    ASSERT_NE(bias, nullptr);
    EXPECT_EQ(bias->value.mean().item<double>(), layer);
    EXPECT_EQ(bias->group, (LearningGroup{1e-3, false}));
  }
}

// Checks the docs' table of kernels for recurrences with one number per channel.
TEST(ExampleMixer, EqualsSelectiveScanWithOneStatePerChannel) {
  at::manual_seed(1);
  const auto a = at::sigmoid(at::randn({2, 20, 6}, at::kDouble)), v = at::randn({2, 20, 6}, at::kDouble);
  const auto one = at::ones({2, 20, 1}, at::kDouble), zero = at::zeros({6, 1}, at::kDouble);
  const auto scanned = carried_selective_scan({}, v, -a.log(), zero, one, one, at::zeros({6}, at::kDouble), 1 - a, 0);
  auto s = at::zeros({2, 6}, at::kDouble);
  for (int64_t t = 0; t < 20; ++t) {
    s = a.select(1, t) * s + (1 - a.select(1, t)) * v.select(1, t);
    EXPECT_LT((scanned.select(1, t) - s).abs().max().item<double>(), 1e-12);
  }
}

TEST(ExampleMixer, DocsShowCompiledSource) {
  const auto text = [](const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(SB_SOURCE_DIR "/" + path).rdbuf();
    return out.str();
  };
  const std::string page = text("docs/add-a-model.md"), fence = "```cpp\n";
  const auto from = page.find(fence);
  ASSERT_NE(from, std::string::npos);
  const auto begin = from + fence.size();
  EXPECT_EQ(page.substr(begin, page.find("```", begin) - begin), text("tests/models/example_mixer.cpp"));
}

}  // namespace
}  // namespace sb
