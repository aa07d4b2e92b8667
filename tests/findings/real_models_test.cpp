// With the rules of the real models: formulas count what they declare, and arms are found among their runs.
#include "findings/gate_parameters.h"

#include <gtest/gtest.h>

#include "../report/synthetic.h"
#include "findings/arms.h"
#include "findings/protocol.h"
#include "models/declare.h"
#include "train/rules.h"

namespace sb::test {
namespace {

// Parameters of the first layer that belong to its gates; rows of a joint projection in proportion.
int64_t declared_gates(const ModelConfig& config) {
  const Declared declared = declare(config);
  const auto size = [&](const std::string& name) {
    const Param p = declared.parameters.find("layers.0." + name);
    return p ? p->count() : 0;
  };
  int64_t out = 0;
  for (const char* name : {"A_log", "dt_bias", "a_proj.weight", "b_proj.weight", "gk_proj.0.weight", "gk_proj.1.weight",
                           "gk_proj.1.bias", "dt_proj.weight", "dt_proj.bias"})
    out += size(name);
  if (config.name.find("delta") != std::string::npos) out += size("k_proj.weight") + size("k_conv1d.weight");
  // The step's rows of Mamba's x_proj are as many as dt_proj has columns, of Mamba2's in_proj as dt_bias has entries.
  if (config.name == "mamba") out += size("dt_proj.weight") / size("dt_proj.bias") * size("dt_proj.bias");
  if (config.name == "mamba2") out += size("dt_bias") * config.width;
  return out;
}

TEST(GateParameters, MatchDeclaredParametersOfModels) {
  for (const std::string model : {"gla", "mamba", "mamba2", "delta_net", "gated_delta_net", "gated_delta_product"})
    for (const int64_t width : {64, 256, 648, 1152, 1296})
      for (const bool conv : {true, false}) {
        Switches switches = {{"short_conv", conv ? "on" : "off"}};
        if (model == "gla") switches = {};
        if (model == "mamba") switches["d_state"] = "32";
        if (model == "gated_delta_net") switches["expand_k"] = "0.5";
        if (model == "gated_delta_net" && width % 32 != 0) continue;  // half a key of 81
        Result r;
        r.model = model;
        r.width = width;
        for (const auto& [key, value] : switches) r.config["model.switch " + key] = "\"" + value + "\"";
        EXPECT_EQ(gate_parameters(r), declared_gates(model_config(model, width, switches))) << model << " " << width;
      }
}

// At the paper's widths: 41 thousand per layer for Mamba2, 1.7 million for a delta rule of the same width.
TEST(GateParameters, MatchPaperAtItsWidths) {
  Result r;
  r.width = 1296;
  r.model = "mamba2";
  EXPECT_NEAR(static_cast<double>(*gate_parameters(r)), 41.5e3, 100);
  r.model = "gated_delta_net";
  EXPECT_NEAR(static_cast<double>(*gate_parameters(r)), 1.7e6, .05e6);
  EXPECT_NEAR(static_cast<double>(*gate_parameters(r, false)), 41.5e3, 100) << "without the key projection";
  r.model = "transformer";
  EXPECT_FALSE(gate_parameters(r).has_value());
}

// A run of this arm, its switches written as a config would have them.
Rows run_of(const ArmModel& arm) {
  std::string text = "task.number = 2\nmodel.name = '" + arm.model + "'\n";
  if (!arm.keys.contains("model.width")) text += "model.width = 256\n";
  for (const auto& [key, value] : arm.switches) text += "model." + key + " = '" + value + "'\n";
  for (const auto& [key, value] : arm.keys) text += key + " = " + value + "\n";
  if (arm.keys.contains("train.schedule") && !arm.keys.contains("task.gap_max"))
    text += "task.gap_max = 100\n";  // a schedule that ends where it begins is none
  return rows_of(parse_suite(text, "suite.toml", {}, model_rules()));
}

TEST(Arms, MatchOnlyTheirRunsOfRealModels) {
  std::set<ArmModel> arms;
  for (const auto& claim : read_claims(SB_SOURCE_DIR "/configs/experiments/claims.toml").claims)
    for (const auto& comparison : claim.comparisons)
      for (const auto* arm : {&comparison.a, &comparison.b}) arms.insert(arm->begin(), arm->end());
  EXPECT_GT(arms.size(), 12U);
  for (const auto& made : arms) {
    const Rows rows = run_of(made);
    ASSERT_EQ(rows.groups.size(), 1U);
    EXPECT_TRUE(fits(rows.groups[0], made)) << made.text();
    for (const auto& asked : arms) {
      // Runs with a schedule or random positions fit only an arm that names them.
      const bool named = std::all_of(usual_training().begin(), usual_training().end(), [&](const auto& usual) {
        return asked.keys.contains(usual.first) || meets(rows.groups[0].config, {usual}, {});
      });
      EXPECT_EQ(fits(rows.groups[0], asked), named && asked.model == made.model && asked.switches == made.switches &&
                                                 meets(rows.groups[0].config, asked.keys, {}))
          << made.text() << " / " << asked.text();
    }
  }
}

}  // namespace
}  // namespace sb::test
