#include "train/adam.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/schedule.h"

namespace sb {
namespace {

std::vector<ParameterGroup> one_group(int64_t n) {
  return {{0, n, 0, true}};
}

TEST(Adam, FollowsTheTextbookRecursion) {
  const int64_t n = 100'003;
  at::manual_seed(1);
  at::Tensor p = at::randn({n}, at::kDouble), expected = p.clone();
  at::Tensor m = at::zeros_like(p), v = at::zeros_like(p);
  Adam adam(p, one_group(n), {});
  for (int t = 1; t <= 5; ++t) {
    const at::Tensor g = at::randn({n}, at::kDouble);
    adam.update(g, 0.5, 1e-3);
    m = 0.9 * m + 0.1 * 0.5 * g;
    v = 0.999 * v + 0.001 * 0.25 * g * g;
    expected -= 1e-3 * (m / (1 - std::pow(0.9, t))) / ((v / (1 - std::pow(0.999, t))).sqrt() + 1e-8);
  }
  EXPECT_LT((p - expected).abs().max().item<double>(), 1e-14);
}

TEST(Adam, CapsTheRateOfASlowGroupAndSparesItFromDecay) {
  at::Tensor p = at::ones({4}, at::kDouble);
  Adam adam(p, {{0, 2, 0, true}, {2, 2, 1e-4, false}}, {0.9, 0.999, 1e-8, 0.1, false});
  adam.update(at::ones({4}, at::kDouble), 1, 1e-2);
  EXPECT_NEAR(p[0].item<double>(), 1 * (1 - 1e-3) - 1e-2, 1e-9);
  EXPECT_NEAR(p[3].item<double>(), 1 - 1e-4, 1e-9);
}

TEST(Adam, InBfloat16NeitherMovesLargeParametersNorLetsTheSecondMomentDecay) {
  at::Tensor p = at::tensor({2.0F, 0.01F}), sound = p.clone();
  AdamConfig bf16;
  bf16.bf16_state = true;
  Adam quirky(p, one_group(2), bf16), plain(sound, one_group(2), {});
  quirky.update(at::ones({2}), 1, 1e-3);
  plain.update(at::ones({2}), 1, 1e-3);
  const float after_first = quirky.second_moment()[0].item<float>();
  for (int i = 0; i < 50; ++i) {
    quirky.update(at::full({2}, 1e-3F), 1, 1e-3);
    plain.update(at::full({2}, 1e-3F), 1, 1e-3);
  }
  EXPECT_EQ(p[0].item<float>(), 2.0F);
  EXPECT_NE(sound[0].item<float>(), 2.0F);
  EXPECT_NE(p[1].item<float>(), 0.01F);
  EXPECT_EQ(quirky.second_moment()[0].item<float>(), after_first);
  EXPECT_LT(plain.second_moment()[0].item<float>(), 0.97F * 1e-3F);
}

TEST(Adam, GroupsMustCoverTheBuffer) {
  at::Tensor p = at::zeros({4});
  EXPECT_ANY_THROW(Adam(p, {{0, 2, 0, true}}, {}));
  EXPECT_ANY_THROW(Adam(p, {{0, 2, 0, true}, {3, 1, 0, true}}, {}));
}

TEST(FlatNorm, HasTheSameBytesForAnyThreadCount) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({1'000'003});
  std::vector<double> norms;
  for (const int threads : {1, 2, 4}) {
    at::set_num_threads(threads);
    norms.push_back(flat_norm(x));
  }
  at::set_num_threads(2);
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[0], norms[2]);
  EXPECT_NEAR(norms[0], x.to(at::kDouble).norm().item<double>(), 1e-9 * norms[0]);
}

TEST(Schedule, RisesInALineThenFallsAsACosineToZero) {
  const Schedule s{2e-3, 10, 110, false};
  EXPECT_DOUBLE_EQ(learning_rate(s, 0), 2e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 9), 2e-3);
  EXPECT_DOUBLE_EQ(learning_rate(s, 10), 2e-3);
  EXPECT_NEAR(learning_rate(s, 60), 1e-3, 1e-15);
  EXPECT_LT(learning_rate(s, 109), 1e-6);
}

TEST(Schedule, PublishedFirstUpdateDoesNothing) {
  EXPECT_EQ(learning_rate({1e-3, 10, 100, true}, 0), 0);
  EXPECT_DOUBLE_EQ(learning_rate({1e-3, 10, 100, true}, 9), 9e-4);
}

}  // namespace
}  // namespace sb
