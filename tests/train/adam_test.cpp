#include "train/adam.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/schedule.h"

namespace sb {
namespace {

std::vector<ParameterGroup> one_group(int64_t n) {
  return {{0, n, 0, true}};
}

at::Tensor one(double value) {
  return at::full({1}, value, at::kDouble);
}

// Whether it was made.
bool update(Adam& adam, const at::Tensor& gradients, double lr) {
  return adam.update(gradients, one(lr), one(1))[1].item<double>() == 1;
}

TEST(Adam, FollowsTheTextbookRecursion) {
  const int64_t n = 100'003;
  at::manual_seed(1);
  at::Tensor p = at::randn({n}, at::kDouble), expected = p.clone();
  at::Tensor m = at::zeros_like(p), v = at::zeros_like(p);
  AdamConfig config;
  config.clip = 200;  // the norms are about 316, the last one 32
  Adam adam(p, one_group(n), config);
  for (int t = 1; t <= 5; ++t) {
    const at::Tensor g = at::randn({n}, at::kDouble) * (t == 5 ? 0.1 : 1);
    const double norm = g.norm().item<double>(), scale = t == 5 ? 1 : 200 / (norm + 1e-6);
    EXPECT_NEAR(adam.update(g, one(1e-3), one(1))[0].item<double>(), norm, 1e-9);
    m = 0.9 * m + 0.1 * scale * g;
    v = 0.999 * v + 0.001 * scale * scale * g * g;
    expected -= 1e-3 * (m / (1 - std::pow(0.9, t))) / ((v / (1 - std::pow(0.999, t))).sqrt() + 1e-8);
  }
  EXPECT_LT((p - expected).abs().max().item<double>(), 1e-14);
}

TEST(Adam, CapsRateOfSlowGroupWithoutDecay) {
  at::Tensor p = at::ones({4}, at::kDouble);
  Adam adam(p, {{0, 2, 0, true}, {2, 2, 1e-4, false}}, {0.9, 0.999, 1e-8, 0.1, false, 0});
  EXPECT_TRUE(update(adam, at::ones({4}, at::kDouble), 1e-2));
  EXPECT_NEAR(p[0].item<double>(), 1 * (1 - 1e-3) - 1e-2, 1e-9);
  EXPECT_NEAR(p[3].item<double>(), 1 - 1e-4, 1e-9);
}

TEST(Adam, Bfloat16FreezesLargeParametersAndSecondMoment) {
  at::Tensor p = at::tensor({2.0F, 0.01F}), sound = p.clone();
  AdamConfig bf16;
  bf16.bf16_state = true;
  Adam quirky(p, one_group(2), bf16), plain(sound, one_group(2), {});
  update(quirky, at::ones({2}), 1e-3);
  update(plain, at::ones({2}), 1e-3);
  const float after_first = quirky.second_moment()[0].item<float>();
  for (int i = 0; i < 50; ++i) {
    update(quirky, at::full({2}, 1e-3F), 1e-3);
    update(plain, at::full({2}, 1e-3F), 1e-3);
  }
  EXPECT_EQ(p[0].item<float>(), 2.0F);
  EXPECT_NE(sound[0].item<float>(), 2.0F);
  EXPECT_NE(p[1].item<float>(), 0.01F);
  EXPECT_EQ(quirky.second_moment()[0].item<float>(), after_first);
  EXPECT_LT(plain.second_moment()[0].item<float>(), 0.97F * 1e-3F);
}

TEST(Adam, StopsAtFirstNonFiniteUpdate) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool by_loss : {true, false}) {
    at::Tensor p = at::ones({4});
    Adam adam(p, one_group(4), {});
    EXPECT_TRUE(update(adam, at::ones({4}), 1e-2));
    const at::Tensor after = p.clone(), first = adam.first_moment().clone(), second = adam.second_moment().clone();
    const at::Tensor report =
        adam.update(at::full({4}, by_loss ? 1 : nan, at::kFloat), one(1e-2), one(by_loss ? nan : 1));
    EXPECT_EQ(report[1].item<double>(), 0);
    EXPECT_EQ(std::isnan(report[0].item<double>()), !by_loss);
    EXPECT_FALSE(update(adam, at::ones({4}), 1e-2));  // sound, but behind it
    EXPECT_TRUE(at::equal(p, after));
    EXPECT_TRUE(at::equal(adam.first_moment(), first));
    EXPECT_TRUE(at::equal(adam.second_moment(), second));
    adam.restore(first, second, 1);
    EXPECT_TRUE(update(adam, at::ones({4}), 1e-2));
    EXPECT_LT(p[0].item<float>(), after[0].item<float>());
  }
}

TEST(Adam, RequiresGroupsToCoverBuffer) {
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

TEST(Schedule, RisesLinearlyThenFallsAsCosineToZero) {
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
