// Each residual against its formula in plain ATen operations, outputs and gradients, with and without dropout.
#include <gtest/gtest.h>

#include "base/format.h"
#include "base/torch_pch.h"
#include "models/network.h"
#include "models/ops.h"

namespace sb {
namespace {

constexpr double p = 0.3;
constexpr uint64_t seed = 9;

struct Case {
  std::string model;
  Switches switches;
  Residual residual;
  bool training;
};

class Residuals : public testing::TestWithParam<Case> {
 protected:
  Residuals()
      : network_(model_config(GetParam().model, 16, GetParam().switches, 2, 5, 7, p, GetParam().residual),
                 at::kDouble) {
    network_.initialise(3);
    // Norms that do something.
    at::manual_seed(4);
    for (const auto& each : network_.parameters().all())
      if (each.name.find("norm") != std::string::npos) each.value.detach().add_(at::randn_like(each.value), 0.3);
    x_ = at::randn({2, 9, 5}, at::kDouble);
    update_ = at::full({1}, 6, at::kLong);
    samples_ = at::arange(2, at::kLong);
  }

  at::Tensor value(const std::string& name) const { return network_.parameters().find(name)->value; }
  at::Tensor norm(const at::Tensor& h, const std::string& name) const {
    return at::layer_norm(h, {h.size(-1)}, value(name + ".weight"), value(name + ".bias"), 1e-5);
  }
  at::Tensor dropped(const at::Tensor& z, int64_t layer, uint32_t place) const {
    if (!GetParam().training) return z;
    return dropout(z, p,
                   DropoutKey{seed, static_cast<uint32_t>(layer) * LayerDropout::places + place, update_, samples_});
  }
  at::Tensor mlp(int64_t layer, const at::Tensor& x) const {
    const auto prefix = formatted("layers.{}.mlp.", layer);
    if (!network_.parameters().find(prefix + "linear1.weight")) return network_.mixer(layer).feed_forward(x, {});
    const auto ab = at::linear(x, value(prefix + "linear1.weight"), value(prefix + "linear1.bias")).chunk(2, -1);
    return at::linear(at::silu(ab[0]) * ab[1], value(prefix + "linear2.weight"), value(prefix + "linear2.bias"));
  }

  at::Tensor by_formula() const {
    const bool has_mlp = network_.config().mixer[switches::mlp] > 0;
    const uint32_t second = find_model(GetParam().model).traits.has_mlp ? LayerDropout::own : LayerDropout::mlp;
    auto h = at::linear(x_, value("encoder.weight"), value("encoder.bias"));
    for (int64_t l = 0; l < 2; ++l) {
      const auto first_norm = formatted("norms.{}", l);
      if (GetParam().residual == Residual::pre) {
        h = h + dropped(network_.mixer(l).forward(norm(h, first_norm), {}), l, LayerDropout::residual);
        if (has_mlp) h = h + dropped(mlp(l, norm(h, formatted("mlp_norms.{}", l))), l, second);
        continue;
      }
      const auto z = network_.mixer(l).forward(h, {});
      auto f = GetParam().residual == Residual::doubled ? h + z : z;
      if (has_mlp) f = f + dropped(mlp(l, h + z), l, second);
      h = norm(h + dropped(f, l, LayerDropout::residual), first_norm);
    }
    if (GetParam().residual == Residual::pre) h = norm(h, "last_norm");
    return at::linear(h, value("decoder.weight"), value("decoder.bias"));
  }

  Network network_;
  at::Tensor x_, update_, samples_;
};

TEST_P(Residuals, EqualTheirFormula) {
  Pass pass;
  pass.training = GetParam().training;
  pass.seed = seed;
  pass.update = update_;
  pass.samples = samples_;
  const auto run = [&](const std::function<at::Tensor()>& forward) {
    network_.parameters().flat_grad().zero_();
    const auto out = forward();
    at::manual_seed(8);
    (out * at::randn_like(out)).sum().backward();
    return std::pair(out.detach(), network_.parameters().flat_grad().clone());
  };
  const auto [out, gradient] = run([&] { return network_.logits(x_, pass); });
  const auto [expected, expected_gradient] = run([&] { return by_formula(); });
  EXPECT_LT((out - expected).abs().max().item<double>(), 1e-11);
  EXPECT_LT((gradient - expected_gradient).abs().max().item<double>(), 1e-9);
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const Residual residual : {Residual::post, Residual::doubled, Residual::pre})
    for (const bool training : {false, true}) {
      out.push_back({"gated_delta_net", {}, residual, training});
      out.push_back({"gla", {{"mlp", "2"}}, residual, training});
      out.push_back({"transformer", {}, residual, training});
      out.push_back({"transformer", {{"mlp", "0"}, {"conv", "4"}}, residual, training});
    }
  return out;
}
INSTANTIATE_TEST_SUITE_P(OfModels, Residuals, testing::ValuesIn(cases()), [](const auto& made) {
  const Case& c = made.param;
  return formatted("{}_{}_{}_{}", c.model, to_string(c.residual), c.training ? "training" : "testing", made.index);
});

TEST(Residuals, PreNormHasItsOwnNormsAndNoOutputNormOfAttention) {
  const Network network(model_config("transformer", 16, {}, 2, 5, 7, 0, Residual::pre));
  const ParameterList& all = network.parameters();
  for (const char* name : {"norms.1.weight", "mlp_norms.1.bias", "last_norm.weight"})
    EXPECT_NE(all.find(name), nullptr) << name;
  EXPECT_EQ(all.find("layers.0.out_norm.weight"), nullptr);
  const Network recurrent(model_config("gla", 16, {}, 2, 5, 7, 0, Residual::pre));
  EXPECT_EQ(recurrent.parameters().find("mlp_norms.0.weight"), nullptr);
}

}  // namespace
}  // namespace sb
