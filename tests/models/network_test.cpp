#include "models/network.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/torch_pch.h"
#include "zoo.h"

namespace sb {
namespace {

ModelConfig small(const std::string& model, double dropout = 0) {
  return model_config(model, 32, {}, 2, 5, 9, dropout);
}

TEST(Network, LossIsTheMeanCrossEntropyOfItsLogits) {
  Network network(small("gated_delta_net"), at::kDouble);
  network.initialise(1);
  const auto x = at::randn({3, 20, 5}, at::kDouble);
  const auto target = at::randint(9, {3, 20}, at::kLong);
  target.select(0, 1).narrow(0, 10, 10).fill_(-1);
  const auto real = target.ge(0);
  const auto logs = at::log_softmax(network.logits(x), -1).gather(2, target.clamp_min(0).unsqueeze(2)).squeeze(2);
  const double expected = -logs.masked_select(real).mean().item<double>();
  EXPECT_NEAR(network.loss(x, target).item<double>(), expected, 1e-12);
  EXPECT_NEAR(network.loss(x, target, {}, at::full({1}, 100.0)).item<double>(),
              expected * real.sum().item<double>() / 100, 1e-12);
}

// Attention depends on differences of positions only.
TEST(Network, TransformerUsesTheGivenPositions) {
  Network network(small("transformer"), at::kDouble);
  network.initialise(1);
  const auto x = at::randn({2, 20, 5}, at::kDouble);
  const auto logits = [&](const at::Tensor& positions) {
    Pass pass;
    pass.positions = positions;
    return network.logits(x, pass);
  };
  const auto frames = at::arange(20, at::kInt).expand({2, 20});
  const at::Tensor plain = network.logits(x);
  EXPECT_TRUE(at::allclose(logits(frames), plain, 1e-9, 1e-9));
  EXPECT_TRUE(at::allclose(logits(frames + 7), plain, 1e-9, 1e-9));
  const at::Tensor spread = frames.clone();
  spread.select(0, 1).mul_(3);
  EXPECT_TRUE(at::allclose(logits(spread).select(0, 0), plain.select(0, 0), 1e-9, 1e-9));
  EXPECT_FALSE(at::allclose(logits(spread).select(0, 1), plain.select(0, 1), 1e-3, 1e-3));
}

// Logits of an evaluation must not be rounded either.
TEST(Network, LogitsOfHalfPrecisionActivationsAreFloats) {
  const Network network = [] {
    Network out(small("gated_delta_net"), at::kFloat, at::kCPU, /*mixed=*/true);
    out.initialise(1);
    return out;
  }();
  const at::NoGradGuard no_gradients;
  const at::Tensor hidden = at::randn({2, 7, 32}).to(at::kBFloat16);
  const auto value = [&](const char* name) { return network.parameters().find(name)->value; };
  const at::Tensor expected =
      at::linear(hidden.to(at::kDouble), value("decoder.weight").to(at::kBFloat16).to(at::kDouble),
                 value("decoder.bias").to(at::kDouble));
  const at::Tensor logits = network.decode(hidden);
  EXPECT_EQ(logits.scalar_type(), at::kFloat);
  EXPECT_LT((logits.to(at::kDouble) - expected).abs().max().item<double>(), 1e-5);
}

TEST(Network, DropoutDependsOnSeedAndPass) {
  Network network(small("transformer", 0.3));
  network.initialise(1);
  const at::NoGradGuard no_gradients;
  const auto x = at::randn({2, 12, 5});
  Pass first, second;
  first.training = second.training = true;
  first.samples = second.samples = at::arange(2, at::kLong);
  first.update = at::zeros({1}, at::kLong);
  second.update = at::ones({1}, at::kLong);
  EXPECT_TRUE(at::equal(network.logits(x, first), network.logits(x, first)));
  EXPECT_FALSE(at::equal(network.logits(x, first), network.logits(x, second)));
  EXPECT_FALSE(at::equal(network.logits(x, first), network.logits(x)));
}

TEST(Network, LoadsWeightsByName) {
  Network from(small("mamba2")), to(small("mamba2"));
  from.initialise(1);
  to.initialise(2);
  std::vector<StoredTensor> stored;
  for (const auto& parameter : from.parameters().all()) {
    const auto* data = reinterpret_cast<const std::byte*>(parameter.value.data_ptr<float>());
    stored.push_back({parameter.name, Dtype::f32, parameter.shape, {data, static_cast<size_t>(parameter.count()) * 4}});
  }
  to.load(Safetensors::parse(write_safetensors(stored), "weights"));
  EXPECT_TRUE(at::equal(from.parameters().flat(), to.parameters().flat()));
  Network other(small("gla"));
  EXPECT_THROW(other.load(Safetensors::parse(write_safetensors(stored), "weights")), Error);
}

TEST(Network, RejectsFramesOfWrongWidth) {
  Network network(small("gru"));
  EXPECT_THROW(network.logits(at::zeros({2, 3, 6})), Error);
  EXPECT_THROW(network.logits(at::zeros({2, 3})), Error);
}

TEST(Network, RecordsGatesPerLayerAndFrame) {
  Network network(small("gated_delta_net"));
  network.initialise(1);
  const at::NoGradGuard no_gradients;
  std::map<std::pair<int64_t, std::string>, at::Tensor> seen;
  const GateRecorder recorder = [&](int64_t layer, std::string_view name, const at::Tensor& values) {
    seen[{layer, std::string(name)}] = values;
  };
  Pass pass;
  pass.gates = &recorder;
  network.hidden(at::randn({2, 6, 5}), pass);
  ASSERT_TRUE(seen.contains({1, "decay"}));
  const auto& decay = seen[{1, "decay"}];
  EXPECT_EQ(decay.size(1), 6);
  EXPECT_TRUE((decay.gt(0) * decay.le(1)).all().item<bool>());
}

class EveryModel : public testing::TestWithParam<std::string> {};

TEST_P(EveryModel, GivesTheSameBytesForAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  at::Tensor logits, gradient;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    at::manual_seed(3);
    // More elements per layer than libtorch gives to one thread, in rows that no vector divides
    Network network(model_config(GetParam(), 72, {}, 2, 11, 33, 0.2));
    network.initialise(5);
    const auto x = at::randn({4, 150, 11});
    const auto target = at::randint(33, {4, 150}, at::kLong);
    Pass pass;
    pass.training = true;
    pass.update = at::zeros({1}, at::kLong);
    pass.samples = at::arange(4, at::kLong);
    network.loss(x, target, pass).backward();
    const auto now = network.logits(x).detach();
    if (threads == 1) {
      logits = now;
      gradient = network.parameters().flat_grad().clone();
    }
    EXPECT_TRUE(at::equal(now, logits)) << threads << " threads";
    for (const auto& parameter : network.parameters().all())
      EXPECT_TRUE(at::equal(parameter.value.grad().flatten(), gradient.narrow(0, parameter.offset, parameter.count())))
          << parameter.name << " with " << threads << " threads";
  }
  at::set_num_threads(before);
}

// Byte for byte: a value that cancels only up to rounding would tell the future.
TEST_P(EveryModel, LaterFramesLeaveTheBytesOfEarlierOutputs) {
  const at::NoGradGuard no_gradients;
  Network network(model_config(GetParam(), 16, {}, 2, 5, 9, 0));
  network.initialise(4);
  test::fill_zeros(network.parameters());
  const auto x = at::randn({2, 90, 5});
  const auto out = network.logits(x);
  for (const int64_t frame : {1, 33, 64, 89}) {
    auto changed = x.clone();
    changed.narrow(1, frame, 90 - frame).mul_(2).add_(3);
    EXPECT_TRUE(at::equal(network.logits(changed).narrow(1, 0, frame), out.narrow(1, 0, frame))) << "frame " << frame;
  }
}

TEST_P(EveryModel, SwitchesRunForwardAndBackwardWithoutNaN) {
  for (const auto& each : find_model(GetParam()).switches)
    for (const auto& value : test::trial_values(each)) {
      Network network(model_config(GetParam(), 16, {{each.name(), value}}, 1, 5, 9, 0.1));
      network.initialise(1);
      const auto loss = network.loss(at::randn({2, 9, 5}), at::randint(9, {2, 9}, at::kLong));
      loss.backward();
      EXPECT_TRUE(std::isfinite(loss.item<double>())) << each.name() << " = " << value;
      EXPECT_TRUE(network.parameters().flat_grad().isfinite().all().item<bool>()) << each.name() << " = " << value;
    }
}

TEST_P(EveryModel, EverySwitchChangesTheOutput) {
  const at::NoGradGuard no_gradients;
  at::manual_seed(5);
  const auto x = 10 * at::randn({2, 20, 5});  // opens and closes gates
  const auto output = [&](const Switches& switches) {
    Network network(model_config(GetParam(), 16, switches, 2, 5, 9, 0));
    network.initialise(4);
    test::fill_zeros(network.parameters());
    return network.logits(x);
  };
  const auto usual = output({});
  for (const auto& each : find_model(GetParam()).switches) {
    bool acts = false;
    for (const auto& value : test::trial_values(each)) acts |= !at::equal(output({{each.name(), value}}), usual);
    EXPECT_TRUE(acts) << each.name();
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryModel, testing::ValuesIn(model_names()), test::by_model);

}  // namespace
}  // namespace sb
