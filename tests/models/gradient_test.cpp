#include <gtest/gtest.h>

#include "base/torch_pch.h"
#include "models/network.h"
#include "models/ops.h"
#include "zoo.h"

namespace sb {
namespace {

// Directional derivative of f at the leaves against central differences.
void expect_gradient(const std::vector<at::Tensor>& leaves, const std::function<at::Tensor()>& f,
                     double tolerance = 1e-7) {
  at::manual_seed(2);
  const auto out = f();
  const auto weights = at::randn_like(out);
  for (const auto& leaf : leaves)
    if (leaf.grad().defined()) leaf.grad().zero_();
  (out * weights).sum().backward();
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto direction = at::randn_like(leaves[i]);
    const double expected = (leaves[i].grad() * direction).sum().item<double>();
    constexpr double step = 1e-6;
    auto value = leaves[i].detach();
    value.add_(direction, step);
    const double up = (f() * weights).sum().item<double>();
    value.add_(direction, -2 * step);
    const double down = (f() * weights).sum().item<double>();
    value.add_(direction, step);
    EXPECT_NEAR((up - down) / (2 * step), expected, tolerance * (1 + std::abs(expected))) << "leaf " << i;
  }
}

at::Tensor leaf(at::IntArrayRef shape) {
  return at::randn(shape, at::kDouble).set_requires_grad(true);
}

TEST(Gradient, ProjectionWithBias) {
  const auto x = leaf({2, 3, 5}), w = leaf({4, 5}), b = leaf({4});
  expect_gradient({x, w, b}, [&] { return project(x, w, b); });
}

TEST(Gradient, GateSwish) {
  const auto x = leaf({2, 3, 14}), beta = leaf({1});
  expect_gradient({x, beta}, [&] { return gate_swish(x, beta); });
}

TEST(Gradient, GruSequence) {
  const auto gates = leaf({2, 7, 15}), w = leaf({15, 5}), b = leaf({15}), first = leaf({2, 5});
  expect_gradient({gates, w, b, first}, [&] { return gru_sequence(gates, w, b, first); });
  expect_gradient({gates, w, b, first}, [&] { return gru_sequence(gates, w, b, first, 0.5); });
}

// A bounded gate must not hide divergence.
TEST(Gradient, GruSequencePropagatesNaNOfUpdateGate) {
  for (const double a_min : {0.0, 0.5}) {
    auto gates = at::zeros({1, 3, 15}, at::kFloat);
    gates[0][1][5 + 2] = NAN;
    const auto h = gru_sequence(gates, at::zeros({15, 5}), at::zeros({15}), at::ones({1, 5}), a_min);
    EXPECT_TRUE(std::isnan(h[0][1][2].item<float>()));
    EXPECT_FALSE(h[0][0].isnan().any().item<bool>());
    EXPECT_FALSE(std::isnan(h[0][1][3].item<float>()));
  }
}

class LayerGradient : public testing::TestWithParam<std::string> {};

TEST_P(LayerGradient, MatchesFiniteDifferencesForEveryParameter) {
  Switches switches;
  if (find_model(GetParam()).find("d_state")) switches["d_state"] = "4";
  Network network(model_config(GetParam(), 8, switches, 1, 3, 4, 0), at::kDouble);
  network.initialise(9);
  at::manual_seed(1);
  const auto x = at::randn({2, 70, 3}, at::kDouble);
  std::vector<at::Tensor> leaves;
  for (const auto& parameter : network.parameters().all()) leaves.push_back(parameter.value);
  expect_gradient(
      leaves, [&] { return network.logits(x); }, 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Zoo, LayerGradient, testing::ValuesIn(model_names()), test::by_model);

}  // namespace
}  // namespace sb
