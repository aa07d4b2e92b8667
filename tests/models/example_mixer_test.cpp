#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/torch_pch.h"
#include "models/network.h"
#include "models/probe.h"

namespace sb {

ModelRow leaky_integrator_row();

namespace {

// The one line that makes it a model; before the tests, so that every suite over model_names() includes it.
const bool registered = (register_model(leaky_integrator_row()), true);

TEST(ExampleMixer, TrainsFromItsForwardAlone) {
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

TEST(ExampleMixer, MeasuresAsItDeclares) {
  const Measured measured = probe("leaky_integrator");
  EXPECT_EQ(measured.row.action, Taxonomy::Action::elementwise);
  EXPECT_EQ(measured.row, declared_row("leaky_integrator"))
      << measured.smallest_decay << " " << measured.write_forget_correlation;
}

TEST(ExampleMixer, TheDocumentShowsTheCompiledCode) {
  const auto text = [](const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(SB_SOURCE_DIR "/" + path).rdbuf();
    return out.str();
  };
  const std::string code = text("tests/models/example_mixer.cpp");
  const std::string page = text("docs/add-a-model.md");
  const auto from = code.find("class LeakyIntegrator"), to = code.find("}  // namespace\n\nModelRow");
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  EXPECT_NE(page.find(code.substr(from, to - from)), std::string::npos);
  EXPECT_NE(page.find(code.substr(code.find("ModelRow leaky"), 70)), std::string::npos);
}

}  // namespace
}  // namespace sb
