// Dropout in a network: every place has masks of its own, which no padding and no cut of the batch changes.
#include <gtest/gtest.h>

#include <set>

#include "base/torch_pch.h"
#include "models/network.h"
#include "zoo.h"

namespace sb {
namespace {

Pass training_pass(const at::Tensor& samples) {
  Pass pass;
  pass.training = true;
  pass.seed = 5;
  pass.update = at::full({1}, 7, at::kLong);
  pass.samples = samples;
  return pass;
}

class DropoutOf : public testing::TestWithParam<std::string> {};

TEST_P(DropoutOf, PlacesHaveDifferentMasks) {
  const ModelRow& row = find_model(GetParam());
  const bool has_mlp = row.find("mlp") != nullptr;
  for (const char* mlp : {"0", "2"}) {
    Network network(model_config(GetParam(), 16, has_mlp ? Switches{{"mlp", mlp}} : Switches{}, 3, 5, 9, 0.3));
    network.initialise(1);
    std::vector<uint32_t> places;
    Pass pass = training_pass(at::arange(2, at::kLong));
    pass.places = &places;
    const at::NoGradGuard no_gradients;
    network.logits(at::randn({2, 4, 5}), pass);
    EXPECT_GE(places.size(), 3U);  // one a layer at least
    const std::set<uint32_t> distinct(places.begin(), places.end());
    EXPECT_EQ(distinct.size(), places.size()) << "mlp " << mlp;
    for (const uint32_t place : places) EXPECT_LT(place, 3 * LayerDropout::places);
    places.clear();
    pass.training = false;
    network.logits(at::randn({2, 4, 5}), pass);
    EXPECT_TRUE(places.empty());
  }
}

TEST_P(DropoutOf, DoesNotDependOnPaddingOrBatchSplit) {
  Network network(model_config(GetParam(), 16, {}, 2, 5, 9, 0.3), at::kDouble);
  network.initialise(1);
  const at::NoGradGuard no_gradients;
  const auto x = at::randn({4, 21, 5}, at::kDouble);
  const auto samples = at::arange(100, 104, at::kLong);
  const auto whole = network.logits(x, training_pass(samples));
  EXPECT_FALSE(at::allclose(whole, network.logits(x)));
  for (const int64_t each : {1, 2})
    for (int64_t first = 0; first < 4; first += each) {
      const auto part = network.logits(x.narrow(0, first, each), training_pass(samples.narrow(0, first, each)));
      EXPECT_TRUE(at::allclose(part, whole.narrow(0, first, each), 1e-10, 1e-10)) << first;
    }
  const auto padded = network.logits(at::constant_pad_nd(x, {0, 0, 0, 60}), training_pass(samples));
  EXPECT_TRUE(at::allclose(padded.narrow(1, 0, 21), whole, 1e-10, 1e-10));
}

INSTANTIATE_TEST_SUITE_P(Zoo, DropoutOf, testing::ValuesIn(model_names()), test::by_model);

}  // namespace
}  // namespace sb
