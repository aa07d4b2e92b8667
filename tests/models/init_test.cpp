#include "models/init.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/sha256.h"
#include "base/torch_pch.h"
#include "models/network.h"

namespace sb {
namespace {

TEST(PortableMath, MatchesStandardLibraryToLastDigits) {
  for (double x = 1e-6; x < 1e6; x *= 1.37) {
    EXPECT_NEAR(portable::log(x), std::log(x), 4e-16 * (1 + std::abs(std::log(x)))) << x;
    EXPECT_NEAR(portable::exp(-std::log(x)) * x, 1, 4e-15) << x;
  }
  for (double u = 0; u < 1; u += 1.0 / 512) {
    EXPECT_NEAR(portable::cos_turns(u), std::cos(2 * std::numbers::pi * u), 4e-16 * 2) << u;
  }
}

std::vector<double> draw(const Init& init, int64_t count, int64_t last_axis = 1, const char* name = "layers.0.x") {
  std::vector<double> out(static_cast<size_t>(count));
  draw_initial(init, 7, name, last_axis, 0, count, out.data());
  return out;
}

TEST(Init, RulesGiveTheDistributionsTheyName) {
  for (const double v : draw(Init::fan_in(16), 1000)) EXPECT_LE(std::abs(v), 0.25);
  double sum = 0, squares = 0;
  for (const double v : draw(Init::normal(2), 40000)) sum += v, squares += v * v;
  EXPECT_NEAR(sum / 40000, 0, 0.05);
  EXPECT_NEAR(squares / 40000, 4, 0.12);
  for (const double v : draw(Init::step_bias(), 1000)) {
    const double step = std::log1p(std::exp(v));
    EXPECT_GE(step, 0.001 * (1 - 1e-9));
    EXPECT_LE(step, 0.1 * (1 + 1e-9));
  }
  for (const double v : draw(Init::log_uniform(0, 16), 1000)) EXPECT_TRUE(std::isfinite(v) && v < std::log(16.0));
  const auto positions = draw(Init::log_position(), 8, 4);
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(positions[i], std::log(1.0 + static_cast<double>(i % 4)), 1e-15);
  EXPECT_NEAR(draw(Init::pi_position(), 4, 4)[3], 3 * std::numbers::pi, 1e-15);
}

TEST(Init, ValueDependsOnlyOnSeedNameAndIndex) {
  const auto all = draw(Init::fan_in(4), 100);
  std::vector<double> part(10);
  draw_initial(Init::fan_in(4), 7, "layers.0.x", 1, 37, 47, part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 37));
  EXPECT_NE(draw(Init::fan_in(4), 100, 1, "layers.1.x"), all);
}

// SHA-256 over names and float values of small networks: equal on every machine and for every thread count.
std::string digest(const std::string& model) {
  Network network(model_config(model, 64, {}, 2, 11, 19));
  network.initialise(3);
  std::string bytes;
  for (const auto& parameter : network.parameters().all()) {
    bytes += parameter.name;
    const auto values = parameter.value.detach().contiguous();
    bytes.append(reinterpret_cast<const char*>(values.data_ptr<float>()), static_cast<size_t>(values.numel()) * 4);
  }
  return sha256_hex(bytes).substr(0, 16);
}

TEST(Init, InitialWeightsHaveTheRecordedDigests) {
  const std::map<std::string, std::string> recorded = {
#include "init_digests.inc"
  };
  for (const auto& [model, expected] : recorded) EXPECT_EQ(digest(model), expected) << model;
}

}  // namespace
}  // namespace sb
