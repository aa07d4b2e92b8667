// Networks whose products take bfloat16 copies compute heads of odd widths with zeros behind them. On the CPU products
// ignore the copies, so that what the padding does is all that could differ.
#include "models/padding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/network.h"

namespace sb {
namespace {

struct Made {
  at::Tensor logits, loss, gradient;
  std::vector<at::Tensor> of_parameters;
};

Made run(const ModelConfig& config, bool mixed, bool in_pieces) {
  Network network(config, at::kDouble, at::kCPU, mixed);
  network.initialise(5);
  at::manual_seed(1);
  const at::Tensor x = at::rand({2, 70, 5}, at::kDouble), target = at::randint(7, {2, 70}, at::kLong);
  Made out;
  if (in_pieces) {
    NetworkState state;
    Pass pass;
    pass.state = &state;
    const at::NoGradGuard no_gradients;
    out.logits = at::cat({network.logits(x.narrow(1, 0, 33), pass), network.logits(x.narrow(1, 33, 37), pass)}, 1);
    return out;
  }
  out.logits = network.logits(x).detach();
  out.loss = network.loss(x, target);
  out.loss.backward();
  for (const Parameter& p : network.parameters().all()) out.of_parameters.push_back(p.value.grad().clone());
  return out;
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max().clamp_min(1e-30)).item<double>();
}

TEST(Padding, DoesNotChangeValuesOrGradients) {
  for (const std::string model : {"delta_net", "gated_delta_net", "gated_delta_product", "mamba2", "mamba", "kda",
                                  "gated_delta_net2", "mlstm", "fox"}) {
    for (const char* gate : {"on", "off"}) {
      std::map<std::string, std::string> switches;
      if (model != "fox") switches["output_gate"] = gate;
      if (model == "mlstm") switches["expand_k"] = "1";
      const ModelConfig config = model_config(model, 36, switches, 2, 5, 7, 0);  // heads of 9 and 18
      const Made plain = run(config, false, false), padded = run(config, true, false);
      EXPECT_LT(difference(padded.logits, plain.logits), 1e-11) << model;
      EXPECT_LT(difference(padded.loss.detach(), plain.loss.detach()), 1e-12) << model;
      ASSERT_EQ(padded.of_parameters.size(), plain.of_parameters.size());
      for (size_t i = 0; i < plain.of_parameters.size(); ++i)
        EXPECT_LT(difference(padded.of_parameters[i], plain.of_parameters[i]), 1e-9) << model << ", parameter " << i;
      EXPECT_LT(difference(run(config, true, true).logits, plain.logits), 1e-10) << model << " in two pieces";
    }
  }
}

TEST(Padding, KeepsAlignedWidths) {
  const at::Tensor copy = at::zeros({1}, at::kBFloat16), w = at::rand({16, 3});
  EXPECT_EQ(computed_width(81, copy), 88);
  EXPECT_EQ(computed_width(72, copy), 72);
  EXPECT_EQ(computed_width(81, {}), 81);
  EXPECT_TRUE(Padding::of_rows({{2, 8, 8}}).padded(w).is_same(w));
  const at::Tensor padded = Padding::of_rows({{2, 5, 8}, {6, 1, 1}}).padded(w);
  EXPECT_EQ(padded.sizes(), (at::IntArrayRef{22, 3}));
  EXPECT_TRUE(at::equal(padded.narrow(0, 8, 5), w.narrow(0, 5, 5)));
  EXPECT_EQ(padded.narrow(0, 13, 3).abs().sum().item<float>(), 0);
  EXPECT_TRUE(at::equal(padded.narrow(0, 16, 6), w.narrow(0, 10, 6)));
}

}  // namespace
}  // namespace sb
