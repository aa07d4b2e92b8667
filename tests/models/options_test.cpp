#include "models/options.h"

#include <gtest/gtest.h>

#include "../base/expect.h"
#include "base/error.h"
#include "models/declare.h"
#include "models/network.h"
#include "zoo.h"

namespace sb {
namespace {

std::string complaint(const std::function<void()>& action) {
  const std::string line = error_line(action);
  EXPECT_TRUE(lacks(line, "\n"));
  return line;
}

TEST(Options, HeadsFollowThePublishedRule) {
  const std::pair<int64_t, int64_t> table[] = {{256, 4}, {384, 4},  {512, 4},   {648, 8},  {768, 8},
                                               {960, 8}, {1024, 8}, {1152, 16}, {1296, 16}};
  for (const auto& [width, heads] : table) EXPECT_EQ(default_heads(width), heads) << width;
}

TEST(Options, SuggestsNearestName) {
  EXPECT_TRUE(has(complaint([] { model_config("mambo", 64); }), "mamba"));
  EXPECT_TRUE(has(complaint([] { model_config("mamba", 64, {{"d_stat", "8"}}); }), "d_state"));
  EXPECT_TRUE(has(complaint([] { model_config("zzz", 64); }), "transformer"));
}

TEST(Options, UnsupportedSwitchNamesModelsThatHaveIt) {
  const auto line = complaint([] { model_config("delta_net", 64, {{"a_min", "0.5"}}); });
  EXPECT_TRUE(has(line, "gla", "gated_delta_net"));
  EXPECT_TRUE(has(complaint([] {
                    model_config("gated_delta_net", 64, {{"householder_factors", "2"}});
                  }),
                  "gated_delta_product"));
}

TEST(Options, RejectsInvalidSizesInOneLine) {
  EXPECT_TRUE(has(complaint([] { model_config("gla", 66); }), "not divisible by 4 heads"));
  EXPECT_TRUE(has(complaint([] { model_config("mamba", 64, {{"d_state", "0"}}); }), "d_state"));
  EXPECT_TRUE(has(complaint([] { model_config("s4", 64, {{"d_state", "7"}}); }), "even"));
  EXPECT_TRUE(has(complaint([] { model_config("gla", 64, {{"expand_k", "0.3"}}); }), "multiple"));
  EXPECT_TRUE(has(complaint([] { model_config("gla", 0); }), "width"));
  EXPECT_TRUE(has(complaint([] { model_config("gla", 64, {{"mlp", "3"}}); }), "0, 1, 2 or 4"));
  EXPECT_TRUE(has(complaint([] { model_config("gla", 64, {{"short_conv", "maybe"}}); }), "on or off"));
  EXPECT_TRUE(has(complaint([] { model_config("gru", 64, {}, 8, 41, 1601, 1); }), "dropout"));
  EXPECT_TRUE(has(complaint([] { Network(model_config("retnet", 36)); }), "even head width"));
}

TEST(Options, EverySwitchRoundTrips) {
  for (const auto& row : registry())
    for (const auto& each : row.switches)
      for (const auto& value : test::trial_values(each)) {
        EXPECT_EQ(switch_text(each.parse(value)), value) << row.name << " " << each.name();
        EXPECT_EQ(model_config(row.name, 16, {{each.name(), value}}).mixer.text(each.name()), value) << row.name;
      }
}

constexpr NumberSwitch own{"own", 0.5, "a number in (0, 1]", [](double v) { return v > 0 && v <= 1; }, "of a test"};

TEST(Options, SwitchReportsDefaultAndRange) {
  const Switch number = own, integer = switches::heads, truth = switches::short_conv;
  EXPECT_EQ(number.initial_text(), "0.5");
  EXPECT_EQ(Switch(own.initially(1)).initial_text(), "1.0");
  EXPECT_EQ(integer.initial_text(), "unset") << "the width decides";
  EXPECT_EQ(integer.range(), "an integer in 1..4096");
  EXPECT_EQ(truth.range(), "on or off");
  EXPECT_EQ(complaint([&] { number.parse("1.5"); }), "[model.own] expected a number in (0, 1], got '1.5'");
  EXPECT_NE(complaint([&] { integer.parse("2.5"); }), "");
  EXPECT_FALSE(integer.takes(2.0)) << "another kind of value";

  MixerOptions with({own, switches::mlp.initially(2)}), without;
  EXPECT_EQ(with[own], 0.5);
  with.set(own, 1);
  without.set(own, 1);
  EXPECT_EQ(with[own], 1);
  EXPECT_EQ(without[own], 0.5) << "a model without the switch has its initial value, always";
  EXPECT_EQ(with[switches::mlp], 2);
  EXPECT_EQ(with.heads(), 1);
}

TEST(Options, SwitchDefaultsDifferBetweenModels) {
  EXPECT_EQ(model_config("mamba", 64).mixer.text("d_state"), "64");
  EXPECT_EQ(model_config("mamba2", 64).mixer.text("d_state"), "128");
  EXPECT_NO_THROW(check_switch("d_state", "7"));  // s4 alone wants it even
  EXPECT_TRUE(has(complaint([] { check_switch("d_state", "0"); }), "d_state"));
  EXPECT_TRUE(has(complaint([] { check_switch("d_stat", "8"); }), "d_state"));
}

TEST(Options, DisabledSwitchesRemoveTheirParameters) {
  const auto parameters = [](const char* model, const Switches& switches) {
    return declare(model_config(model, 64, switches, 1)).parameters;
  };
  EXPECT_EQ(parameters("gla", {{"output_gate", "off"}}).find("layers.0.g_proj.weight"), nullptr);
  EXPECT_NE(parameters("delta_net", {{"output_gate", "on"}}).find("layers.0.g_proj.weight"), nullptr);
  EXPECT_EQ(parameters("mamba", {{"short_conv", "off"}}).find("layers.0.conv1d.weight"), nullptr);
  EXPECT_EQ(parameters("gated_delta_product", {{"householder_factors", "2"}}).find("layers.0.k_proj.weight")->shape[0],
            2 * 64);
  EXPECT_EQ(parameters("gru", {{"mlp", "2"}}).find("layers.0.mlp.linear1.weight")->shape[0], 4 * 64);
  EXPECT_EQ(parameters("transformer", {{"mlp", "0"}}).find("layers.0.linear1.weight"), nullptr);
}

}  // namespace
}  // namespace sb
