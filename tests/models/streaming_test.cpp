#include <gtest/gtest.h>

#include "base/torch_pch.h"
#include "models/network.h"
#include "zoo.h"

namespace sb {
namespace {

constexpr int64_t inputs = 5, outputs = 7;

ModelConfig small(const std::string& model, const Switches& switches, Residual residual) {
  Switches asked = switches;
  if (find_model(model).find("d_state")) asked.emplace("d_state", "6");
  return model_config(model, 16, asked, 2, inputs, outputs, 0, residual);
}

struct Case {
  std::string model;
  Switches switches;
  std::string name;
  Residual residual = Residual::post;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model;
  for (const auto& [name, value] : c.switches) *out << "_" << name << "_" << value;
}

class Streaming : public testing::TestWithParam<Case> {
 protected:
  Streaming() : network_(small(GetParam().model, GetParam().switches, GetParam().residual), at::kDouble) {
    network_.initialise(11);
    at::manual_seed(5);
  }
  at::Tensor frames(int64_t length) const { return at::randn({2, length, inputs}, at::kDouble); }
  static double distance(const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
  }
  Network network_;
};

TEST_P(Streaming, FrameByFrameEqualsTheWholeSequence) {
  const at::NoGradGuard no_gradients;
  const auto x = frames(70);
  const auto whole = network_.logits(x);
  NetworkState state;
  const bool grows = network_.mixer(0).taxonomy().action == Taxonomy::Action::cache;
  int64_t held = 0;
  for (int64_t t = 0; t < x.size(1); ++t) {
    const auto y = network_.step(x.select(1, t), state);
    EXPECT_LT(distance(y, whole.select(1, t)), 1e-10) << "frame " << t;
    const int64_t elements = state.elements();
    if (t == 0) held = elements;
    EXPECT_TRUE(elements == held || grows) << "memory grew at frame " << t;
  }
}

TEST_P(Streaming, SequenceCutAnywhereGivesTheSameOutputsAndGradients) {
  const auto x = frames(67);
  const auto weights = frames(67).narrow(2, 0, 1);
  auto& parameters = network_.parameters();
  const auto objective = [&](const at::Tensor& y, int64_t from) {
    return (y * weights.narrow(1, from, y.size(1))).sum();
  };
  const auto whole = network_.logits(x);
  objective(whole, 0).backward();
  const auto expected = parameters.flat_grad().clone();
  for (const std::vector<int64_t>& pieces : {std::vector<int64_t>{1, 66}, {2, 1, 64}, {40, 27}, {66, 1}}) {
    parameters.flat_grad().zero_();
    NetworkState state;
    Pass pass;
    pass.state = &state;
    std::vector<at::Tensor> outputs_so_far;
    at::Tensor sum;
    int64_t from = 0;
    for (const int64_t length : pieces) {
      const auto y = network_.logits(x.narrow(1, from, length), pass);
      sum = sum.defined() ? sum + objective(y, from) : objective(y, from);
      outputs_so_far.push_back(y);
      from += length;
    }
    EXPECT_LT(distance(at::cat(outputs_so_far, 1), whole), 1e-10);
    sum.backward();
    EXPECT_LT(distance(parameters.flat_grad(), expected), 1e-9);
  }
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& model : model_names()) {
    out.push_back({model, {}, model});
    out.push_back({model, test::turned(model), model + "_turned"});
  }
  const auto also = [&](const std::string& model, const Switches& switches, Residual residual = Residual::post) {
    out.push_back({model, switches, model + "_" + std::to_string(out.size()), residual});
  };
  also("mamba", {{"complementary", "off"}, {"short_conv", "off"}});
  also("mamba", {{"a_min", "0.5"}, {"output_gate", "off"}});
  also("mamba2", {{"complementary", "off"}, {"output_gate", "off"}});
  also("gla", {{"complementary", "on"}, {"a_min", "0.99"}});
  also("gru", {{"a_min", "0.5"}});
  also("gated_delta_product", {{"householder_factors", "2"}, {"mlp", "1"}});
  also("gated_delta_net", {{"delta", "off"}});
  also("transformer", {{"mlp", "0"}});
  also("transformer", {{"mlp", "0"}}, Residual::doubled);
  for (const Residual residual : {Residual::doubled, Residual::pre}) {
    also("transformer", {{"conv", "4"}}, residual);
    also("mamba2", {}, residual);
    also("gated_delta_net", {{"mlp", "2"}}, residual);
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(EveryModel, Streaming, testing::ValuesIn(cases()),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace sb
