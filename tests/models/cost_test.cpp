#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/error.h"
#include "models/declare.h"

namespace sb {
namespace {

constexpr int64_t widths[] = {256, 384, 512, 648, 768, 960, 1024, 1152, 1296};
constexpr int64_t layers = 8, inputs = 41, outputs = 1601;

struct Sizes {
  int64_t d, h, N;
};
// Parameters of one layer in closed form.
const std::map<std::string, std::function<int64_t(Sizes)>> closed_forms = {
    {"transformer", [](Sizes s) { return 16 * s.d * s.d + 14 * s.d + 2 * s.d / s.h + 1; }},
    {"mamba",
     [](Sizes s) {
       const int64_t D = 2 * s.d, R = (s.d + 15) / 16;
       return 6 * s.d * s.d + 5 * D + D * (R + 2 * s.N) + D * (R + 1) + D * s.N + D;
     }},
    {"mamba2",
     [](Sizes s) {
       const int64_t D = 2 * s.d, H = 2 * s.h;
       return s.d * (2 * D + 2 * s.N + H) + 5 * (D + 2 * s.N) + 3 * H + D + D * s.d;
     }},
    {"gla", [](Sizes s) { return 8 * s.d * s.d + 49 * s.d + 2 * s.d / s.h; }},
    {"retnet", [](Sizes s) { return 8 * s.d * s.d + 16 * s.d + 2 * s.d / s.h; }},
    {"delta_net", [](Sizes s) { return 6 * s.d * s.d + s.d * s.h + 16 * s.d + 2 * s.d / s.h; }},
    {"gated_delta_net", [](Sizes s) { return 8 * s.d * s.d + 2 * s.d * s.h + 2 * s.h + 16 * s.d + 2 * s.d / s.h; }},
    {"gated_delta_product",
     [](Sizes s) { return 17 * s.d * s.d + 5 * s.d * s.h + 2 * s.h + 52 * s.d + 2 * s.d / s.h; }},
    {"linear_attn",
     [](Sizes s) {
       const int64_t K = s.d / s.h;
       return 4 * s.d * s.d + 4 * (K * K + K) + K;
     }},
    {"linear_attn_elu", [](Sizes s) { return 4 * s.d * s.d + s.d / s.h; }},
    {"s4", [](Sizes s) { return 2 * s.d * s.d + 4 * s.d + 2 * s.d * s.N; }},
    {"gru", [](Sizes s) { return 6 * s.d * s.d + 6 * s.d; }},
};

TEST(Cost, ParametersMatchClosedFormsAtEveryWidth) {
  for (const auto& row : registry()) {
    if (!closed_forms.contains(row.name)) continue;
    for (const int64_t width : widths) {
      if (row.name == "transformer" && width == 960) continue;
      const ModelConfig config = model_config(row.name, width);
      const int64_t d = config.mixer.width;
      const int64_t layer = closed_forms.at(row.name)({d, config.mixer.heads(), config.mixer[switches::d_state]});
      const Cost counted = cost(config, 400);
      EXPECT_EQ(counted.layer_parameters, layer) << row.name << " " << width;
      EXPECT_EQ(counted.parameters, layers * layer + d * (inputs + 1) + 2 * d * layers + outputs * (d + 1))
          << row.name << " " << width;
    }
  }
}

TEST(Cost, EveryClosedFormNamesAModel) {
  for (const auto& [name, form] : closed_forms) EXPECT_NO_THROW(find_model(name));
  EXPECT_GE(registry().size(), closed_forms.size());
}

// Published parameter counts in millions, rounded to two digits.
TEST(Cost, ParametersMatchThePublishedTable) {
  const std::map<std::string, std::vector<double>> table = {
      {"delta_net", {3.61, 7.78, 13.52, 21.36, 29.74, 46.02, 52.23, 65.91, 83.11}},
      {"gla", {4.72, 10.23, 17.83, 28.21, 39.33, 60.95, 69.21, 87.30, 110.16}},
      {"mamba", {4.52, 9.23, 15.59, 24.15, 33.21, 50.73, 57.39, 71.94, 90.26}},
      {"mamba2", {4.15, 8.57, 14.57, 22.71, 31.34, 48.02, 54.37, 68.39, 85.89}},
      {"gated_delta_net", {4.67, 10.15, 17.73, 28.12, 39.22, 60.82, 69.07, 87.29, 110.15}},
      {"gated_delta_product", {9.49, 20.92, 36.80, 58.66, 82.06, 127.64, 145.06, 183.62, 231.95}},
      {"transformer", {8.84, 19.56, 34.46, 76.86, 76.86, 0, 136.03, 171.91, 211.98}},
      {"retnet", {4.65, 10.13, 17.70, 28.03, 39.12, 60.70, 68.94, 87.00, 109.81}},
      {"gru", {3.58, 7.73, 13.46, 21.26, 29.62, 45.88, 52.08, 65.67, 82.84}},
      {"s4", {2.01, 3.80, 6.11, 9.14, 12.31, 18.34, 20.61, 25.54, 31.72}},
  };
  for (const auto& [model, millions] : table)
    for (size_t i = 0; i < millions.size(); ++i) {
      if (millions[i] == 0) continue;
      const auto counted = static_cast<double>(cost(model_config(model, widths[i]), 400).parameters) / 1e6;
      EXPECT_NEAR(counted, millions[i], 0.00501) << model << " " << widths[i];
    }
}

TEST(Cost, StateSizesMatchThePublishedTable) {
  const std::map<std::pair<std::string, int64_t>, int64_t> states = {
      {{"delta_net", 1296}, 209952},          {{"gla", 1152}, 165888},   {{"gated_delta_net", 1152}, 165888},
      {{"gated_delta_product", 768}, 147456}, {{"mamba", 1296}, 165888}, {{"mamba2", 1296}, 331776}};
  for (const auto& [key, elements] : states)
    EXPECT_EQ(cost(model_config(key.first, key.second), 400).state_elements, elements) << key.first;
}

TEST(Cost, FlopsMatchThePublishedTable) {
  struct Row {
    const char* model;
    int64_t width;
    double matmul, mixing, training;  // MFLOP a token at T = 400
  };
  for (const Row& row : {Row{"delta_net", 1296, 165.8, 14.7, 542}, Row{"gla", 1152, 174.2, 7.1, 544},
                         Row{"mamba", 1296, 177.5, 11.9, 568}, Row{"mamba2", 1296, 171.5, 16.2, 563},
                         Row{"gated_delta_net", 1152, 174.2, 12.1, 559},
                         Row{"gated_delta_product", 768, 163.4, 32.2, 587}, Row{"transformer", 768, 153.5, 4.9, 475}}) {
    const Cost counted = cost(model_config(row.model, row.width), 400);
    EXPECT_NEAR(counted.matmul_flops / 1e6, row.matmul, 0.051) << row.model;
    EXPECT_NEAR(counted.mixing_flops / 1e6, row.mixing, 0.051) << row.model;
    EXPECT_NEAR(counted.training_flops() / 1e6, row.training, 0.51) << row.model;
  }
}

TEST(Cost, TransformerTakesHeadsFromNominalWidth) {
  const ModelConfig small = model_config("transformer", 648), large = model_config("transformer", 1296);
  EXPECT_EQ(small.mixer.width, 768);
  EXPECT_EQ(small.mixer.heads(), 8);
  EXPECT_EQ(large.mixer.width, 1280);
  EXPECT_EQ(large.mixer.heads(), 16);
  EXPECT_THROW(model_config("transformer", 960), Error);
}

}  // namespace
}  // namespace sb
