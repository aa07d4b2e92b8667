// Configs against the real models: what is refused, and which networks share an id.
#include "train/rules.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <filesystem>
#include <map>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "../models/zoo.h"
#include "base/error.h"
#include "base/model_facts.h"
#include "config/data.h"
#include "models/declare.h"
#include "small_run.h"
#include "suites/suite.h"
#include "tasks/ceiling.h"
#include "tasks/evaluate.h"
#include "train/gpu.h"

namespace sb {
namespace {

using test::TemporaryFolder;

ResolvedConfig resolved(const std::string& text, const ModelRules& rules = model_rules()) {
  return resolve(parse_settings(text, "run.toml"), rules, "run.toml");
}

std::string fault(const std::string& text, const ModelRules& rules = model_rules()) {
  return error_line([&] { resolved(text, rules); });
}

// A shipped config may be tried with another model, whatever switches its own model has.
TEST(Overrides, OfTheModelDropSwitchesOfTheFileThatItLacks) {
  const std::string text = "[model]\nname = 'delta_net'\nnegative_eigenvalues = true\nheads = 2\n";
  const auto with = [&](const std::vector<std::string>& overrides) {
    return resolve_config_text(text, "run.toml", overrides, model_rules());
  };
  const ResolvedConfig gru = with({"model.name=gru"});
  EXPECT_FALSE(gru.values.model.switches.contains("negative_eigenvalues"));
  EXPECT_EQ(gru.run_id, resolved("[model]\nname = 'gru'\n").run_id);
  ASSERT_FALSE(gru.notes.empty());
  EXPECT_TRUE(std::any_of(gru.notes.begin(), gru.notes.end(), [](const std::string& note) {
    return note.starts_with("model.negative_eigenvalues is not used: gru has no such switch, run.toml:3");
  })) << gru.notes.front();
  EXPECT_EQ(with({"model.name=gated_delta_net"}).values.model.switches.at("heads"), "2");
  EXPECT_TRUE(with({"model.name=gated_delta_net"}).notes.empty());
  // What the same command line asks for, and what a file alone says, stays an error.
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"model.name=gru", "model.negative_eigenvalues=true"},
        {"model.name=delta_net", "model.d_state=4"}})
    EXPECT_NE(error_line([&] { with(overrides); }), "") << overrides[1];
  EXPECT_NE(fault("[model]\nname = 'gru'\nnegative_eigenvalues = true\n"), "");
}

const std::map<std::string, std::vector<std::string>>& switch_values() {
  static const std::map<std::string, std::vector<std::string>> values = {
      {"heads", {"1", "2", "4", "'4'"}},
      {"d_state", {"4", "6", "64", "128"}},
      {"expand_k", {"0.5", "1", "1.0", "2"}},
      {"expand_v", {"0.5", "1", "2.0", "2"}},
      {"householder_factors", {"1", "2", "4"}},
      {"complementary", {"true", "false", "'on'"}},
      {"negative_eigenvalues", {"true", "false", "'off'"}},
      {"short_conv", {"true", "false", "1"}},
      {"output_gate", {"true", "false", "0"}},
      {"a_min", {"0", "0.0", "0.5", "0.9"}},
      {"mlp", {"0", "1", "2", "4"}},
      {"rope_base", {"500", "1000", "1e3", "10000"}},
      {"conv", {"0", "4"}},
      {"delta", {"true", "false", "'on'"}},
  };
  return values;
}

std::vector<std::string> quoted(std::vector<std::string> values) {
  for (auto& value : values) value = "'" + value + "'";
  return values;
}

struct Case {
  std::string text, id;
  ModelConfig network;
  at::Tensor output;  // of one layer, the same seed and input
};

at::Tensor forward(ModelConfig config) {
  config.layers = 1;
  config.inputs = 5;
  config.outputs = 7;
  config.dropout = config.mixer.dropout = 0;
  Network network(config);
  network.initialise(3);
  const at::NoGradGuard no_gradients;
  at::manual_seed(1);
  return network.logits(at::randn({2, 6, 5}));
}

bool same_network(const ModelConfig& a, const ModelConfig& b) {
  return a.mixer == b.mixer && a.layers == b.layers && a.dropout == b.dropout;
}

// Every switch of the model at several values and two widths, each with every residual.
std::vector<Case> cases_of(const std::string& model) {
  std::vector<std::string> texts;
  for (const char* width : {"16", "32"}) {
    const std::string head = "[model]\nname = '" + model + "'\nwidth = " + width + "\n";
    texts.push_back(head);
    for (const auto& each : find_model(model).switches) {
      const auto written = switch_values().find(each.name());
      const auto values = written == switch_values().end() ? quoted(test::trial_values(each)) : written->second;
      for (const auto& value : values) texts.push_back(head + each.name() + " = " + value + "\n");
    }
  }
  std::vector<Case> out;
  for (const auto& text : texts)
    for (const char* residual : {"", "residual = 'post'\n", "residual = 'double'\n", "residual = 'pre'\n"}) {
      const ResolvedConfig config = resolved(text + residual);
      const ModelConfig network = network_config(config.values, 41, 1601);
      out.push_back({text + residual, config.run_id, network, forward(network)});
    }
  return out;
}

TEST(RunIds, AreEqualOnlyForEqualNetworks) {
  for (const auto& model : model_names()) {
    const std::vector<Case> cases = cases_of(model);
    for (size_t i = 0; i < cases.size(); ++i)
      for (size_t j = i + 1; j < cases.size(); ++j) {
        const Case &a = cases[i], &b = cases[j];
        EXPECT_EQ(a.id == b.id, same_network(a.network, b.network)) << a.text << "---\n" << b.text;
        const bool alike = a.output.sizes() == b.output.sizes() && at::equal(a.output, b.output);
        if (!alike) {
          EXPECT_NE(a.id, b.id) << a.text << "---\n" << b.text;
        }
      }
  }
}

TEST(RunIds, DifferBetweenTransformerResiduals) {
  const std::string plain = "[model]\nname = 'transformer'\nwidth = 16\n";
  const auto id = [&](const std::string& text) { return resolved(plain + text).run_id; };
  EXPECT_NE(id("residual = 'post'\n"), id("residual = 'double'\n"));
  EXPECT_NE(id("residual = 'post'\n"), id("residual = 'pre'\n"));
  const std::string published = "[run]\nprotocol = 'published'\n";
  EXPECT_EQ(id(published), id("residual = 'double'\n" + published));
  EXPECT_NE(id(published), id("residual = 'post'\n" + published)) << "a key has the last word";
  const auto width = [](const char* label) {
    return resolved("[model]\nname = 'transformer'\nwidth = " + std::string(label) + "\n").run_id;
  };
  EXPECT_EQ(width("648"), width("768"));
  EXPECT_EQ(width("1296"), width("1280"));
  EXPECT_NE(width("512"), width("768"));
}

TEST(RunIds, IgnoreQuirksOfOtherModels) {
  for (const auto& row : registry()) {
    const std::string plain = "[model]\nname = '" + row.name + "'\nwidth = 64\n";
    const ResolvedConfig with = resolved(plain + "[quirks]\ndelta_bf16 = true\n");
    const bool acts = model_facts(row.name).published_in_bf16;
    EXPECT_EQ(resolved(plain).run_id == with.run_id, !acts) << row.name;
    EXPECT_EQ(with.keys_without_effect.contains("quirks.delta_bf16"), !acts) << row.name;
  }
}

TEST(Rules, RejectSizesBeyondDropoutStreams) {
  const std::string grammar = "[grammar]\nvocab = 6\nambiguities = 2\ndepth = 3\n";
  const std::string task = grammar + "[task]\ngap_law = 'uniform'\nlength = 20\ngap_max = 60000\n";
  const std::string text = task + "[model]\ndropout = 0.2\n";
  const std::string frames =
      "[task.length] frames of the longest training sample under dropout, expected at most 1048576, got 1200020";
  EXPECT_TRUE(fault(text, run_rules()).starts_with(frames)) << fault(text, run_rules());
  EXPECT_EQ(fault(task + "[model]\ndropout = 0\n", run_rules()), "");
  const std::string wide = grammar + "[model]\nname = 'gru'\nlayers = 1\nwidth = 32772\ndropout = 0.2\n";
  EXPECT_TRUE(has(fault(wide, run_rules()), "[model.width] channels under dropout, expected at most 32768, got 32772"));
  EXPECT_TRUE(has(error_line([&] { parse_suite(text + "[grid]\nrun.seed = [1, 2]\n", "suite.toml", {}, run_rules()); }),
                  "(2 of 2 runs)"));
  const TemporaryFolder root;
  const ResolvedConfig config = test::small_config({"task.gap_law=uniform", "task.gap_max=60000"});
  EXPECT_THROW(test::work(config, root.path()), Error);
  EXPECT_FALSE(std::filesystem::exists(root.path() + "/" + config.run_id)) << "refused before the folder is made";
}

// Whether a network of this config can be built and, where it is small, run.
bool builds(const RunConfig& values) {
  try {
    Network network(network_config(values, 5, 7));
    network.initialise(1);
    if (values.model.width <= 24) {
      const at::Tensor loss = network.loss(at::ones({1, 3, 5}), at::zeros({1, 3}, at::kLong));
      loss.backward();
    }
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    return false;
  }
}

TEST(Rules, RejectExactlyNetworksThatCannotBeBuilt) {
  size_t refused = 0, built = 0;
  for (const auto& row : registry()) {
    std::vector<std::string> variants = {""};
    const auto add = [&](const char* name, std::initializer_list<const char*> values) {
      if (!row.find(name)) return;
      for (const char* value : values) variants.push_back(std::string(name) + " = " + value + "\n");
    };
    add("heads", {"1", "3", "8"});
    add("d_state", {"1", "7"});
    add("expand_k", {"0.3", "0.25"});
    add("expand_v", {"1.5"});
    std::vector<int> widths;
    for (int w = 1; w <= 24; ++w) widths.push_back(w);
    for (const int w : {52, 63, 64, 66, 100, 132, 514, 520, 648, 960}) widths.push_back(w);
    for (const int width : widths)
      for (const auto& variant : variants) {
        const std::string text =
            "[model]\nname = '" + row.name + "'\nlayers = 1\nwidth = " + std::to_string(width) + "\n" + variant;
        const std::string line = fault(text);
        RunConfig values = tentative_values(parse_settings(text, "run.toml"));
        EXPECT_EQ(line.empty(), builds(values)) << text << line;
        if (!line.empty()) {
          EXPECT_TRUE(has(line, ", run.toml:"));
        }
        ++(line.empty() ? built : refused);
      }
  }
  EXPECT_GT(refused, 500U);
  EXPECT_GT(built, 500U);
}

TEST(Rules, ReportEveryInvalidSwitch) {
  EXPECT_EQ(fault("[model]\nname = 'gla'\nshort_conv = 'maybe'\nmlp = 3\n"),
            "[model.mlp] expected 0, 1, 2 or 4, got '3', run.toml:4:7\n"
            "[model.short_conv] expected on or off, got 'maybe', run.toml:3:14");
  EXPECT_TRUE(has(fault("[model]\nname = 'gru'\nwidth = 65536\nlayers = 1024\n"), "[model.width] "));
}

TEST(Rules, RejectUnavailableDeviceOnlyForRuns) {
  if (has_gpu()) GTEST_SKIP() << "there is a GPU";
  const std::string text = "[train]\ndevice = 'cuda'\n";
  EXPECT_EQ(fault(text), "");
  EXPECT_EQ(fault(text, run_rules()),
            "[train.device] expected cpu, got cuda: " + gpu_facts().missing + ", run.toml:2:10");
  EXPECT_EQ(fault("[train]\nprecision = 'tf32'\n", run_rules()),
            "[train.precision] tf32 requires device cuda; use fp32 or fp64 on the CPU, run.toml:2:13");
  EXPECT_NE(fault("[train]\nprecision = 'bf16'\n", run_rules()), "") << "kept in bfloat16: quirks.delta_bf16";
}

TEST(Rules, ResolveDeviceBeforeRunId) {
  ModelRules with = model_rules(), without = model_rules();
  with.has_gpu = [] { return true; };
  without.has_gpu = [] { return false; };
  for (const char* text : {"", "[train]\ndevice = 'auto'\n"}) {
    EXPECT_EQ(resolved(text, without).run_id, resolved("[train]\ndevice = 'cpu'\n").run_id);
    EXPECT_EQ(resolved(text, without).values.train.precision, Precision::fp32);
    EXPECT_EQ(resolved(text, with).run_id, resolved("[train]\ndevice = 'cuda'\n").run_id);
    EXPECT_EQ(resolved(text, with).values.train.precision, Precision::amp);
    EXPECT_TRUE(lacks(resolved(text, with).canonical, "auto"));
    EXPECT_EQ(resolved(text, with).origins.at("train.device").text(), "derived from the devices of this machine");
  }
}

TEST(Rules, RejectGrammarWithoutSamplesBeforeRun) {
  const std::string line = fault("[task]\nlength = 1\n", run_rules());
  EXPECT_TRUE(has(line, "[sample.length] ", ", run.toml:"));
}

TEST(Rules, ListErrorsOfAllRunsOfSuite) {
  if (has_gpu()) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(
      error_line([&] {
        parse_suite(
            "[grid]\nmodel.name = ['gla', 'retnet', 'gru']\nmodel.width = [16, 34, 36]\n[train]\ndevice = 'cuda'\n"
            "precision = 'fp32'\n[grammar]\nvocab = 6\nambiguities = 2\ndepth = 3\n",
            "suite.toml", {}, run_rules());
      }),
      ("[train.device] expected cpu, got cuda: " + gpu_facts().missing +
       ", suite.toml:5:10 (9 of 9 runs)\n"
       "[model.heads] width 34 is not divisible by 4 heads, suite.toml:3:20 (2 of 9 runs)\n"
       "[model.width] retnet rotates halves of a head: expected an even head width, got 9, suite.toml:3:24 "
       "(1 of 9 runs)")
          .c_str());
}

TEST(Rules, TableHasEverySwitchOfEveryModel) {
  size_t rows = 0;
  for (const auto& row : registry()) rows += row.switches.size();
  const ModelRules rules = model_rules();
  EXPECT_EQ(rules.table.size(), rows);
  for (const auto& row : rules.table) {
    EXPECT_FALSE(row.meaning.empty() || row.range.empty()) << row.key;
    if (row.initial == "unset") continue;
    const std::string base = "[model]\nname = '" + row.model + "'\nwidth = 64\n";
    EXPECT_EQ(resolved(base).run_id, resolved(base + row.key + " = '" + row.initial + "'\n").run_id)
        << row.model << " " << row.key << ": its default written out is the same run";
  }
  for (const auto& row : registry()) EXPECT_FALSE(row.equations.empty()) << row.name;
}

// Every model of the zoo, within the documented tolerance.
TEST(Match, ReachesTargetSizeForEveryModel) {
  const ModelRules rules = model_rules();
  std::string names;
  for (const auto& name : model_names()) names += (names.empty() ? "'" : ", '") + name + "'";
  const auto suite = [&](const std::string& match, const std::string& models) {
    return parse_suite("[suite]\n" + match + "[task]\nnumber = 1\n[grid]\nmodel.name = [" + models + "]\n", "s.toml",
                       {}, rules);
  };
  const auto params = suite("match = 'params'\nmatch_target = 4700000\nmatch_step = 8\n", names);
  ASSERT_EQ(params.runs.size(), model_names().size());
  ASSERT_EQ(params.matched.size(), model_names().size());
  for (size_t i = 0; i < params.runs.size(); ++i) {
    const RunConfig& run = params.runs[i].values;
    EXPECT_EQ(run.model.width % 8, 0) << run.model.name;
    const TaskSize task = size_of_task(run);
    const Cost c = cost(network_config(run, task.channels, task.answers), 400);
    EXPECT_EQ(static_cast<double>(c.parameters), params.matched[i].size) << run.model.name;
    EXPECT_NEAR(static_cast<double>(c.parameters), 4.7e6, 0.035 * 4.7e6) << run.model.name;
  }
  const auto flops = suite("match = 'flops'\nmatch_target = 12e6\n", names);
  for (size_t i = 0; i < flops.runs.size(); ++i) {
    const RunConfig& run = flops.runs[i].values;
    const Cost c = cost(network_config(run, 41, 1601), 400);
    EXPECT_NEAR(c.matmul_flops + c.mixing_flops, 12e6, 0.035 * 12e6) << run.model.name;
  }
  // The state of all that have one of a fixed size; widths and, where there is one, d_state.
  const auto state =
      suite("match = 'state'\nmatch_target = 30000\n", "'gla', 'mamba', 'mamba2', 'delta_net', 's4', 'retnet'");
  for (size_t i = 0; i < state.runs.size(); ++i) {
    const RunConfig& run = state.runs[i].values;
    EXPECT_NEAR(static_cast<double>(cost(network_config(run, 41, 1601), 400).state_elements), 30000, 0.05 * 30000)
        << run.model.name;
  }
}

TEST(Match, ReportsImpossibleSizesInOneLine) {
  const ModelRules rules = model_rules();
  const auto fault = [&](const std::string& by, const std::string& target, const std::string& model) {
    return error_line([&] {
      parse_suite("[suite]\nmatch = '" + by + "'\nmatch_target = " + target + "\n[model]\nname = '" + model + "'\n",
                  "s.toml", {}, rules);
    });
  };
  EXPECT_EQ(
      fault("state", "32768", "transformer"),
      "[suite.match] transformer: no width has any state elements per layer with these switches, expected 32,768 state "
      "elements per layer within 10 %, s.toml:2:1");
  EXPECT_EQ(fault("state", "1e9", "gru").substr(0, 32), "[suite.match] gru: the nearest i");
  EXPECT_EQ(fault("params", "100", "mamba2").substr(0, 35), "[suite.match] mamba2: the nearest i");
}

TEST(Ceilings, AreNotMeasuredWithoutSamples) {
  const TemporaryFolder root;
  const ResolvedConfig config = test::small_config({"eval.ceiling_samples=0", "eval.gaps=[1]", "train.updates=4"});
  EXPECT_EQ(test::work(config, root.path()), RunStatus::done);
  EXPECT_TRUE(lacks(test::content(root.path(), config, "result.json"), "\"ceiling\""));
}

// The exact laws as a model's output: the metric of `evaluate` and the ceiling's own counting must agree.
class LawPredictor final : public Predictor {
 public:
  LawPredictor(const RunData& data, bool of_next) : data_(data), of_next_(of_next) {}
  int answers() const override { return data_.task->shape().answers; }
  void begin(const Batch& batch) override {
    filters_.clear();
    for (int b = 0; b < batch.batch; ++b) filters_.push_back(data_.task->oracle(Split::test));
  }
  void predict(const Batch& batch, int from, int to, float* probabilities) override {
    std::vector<double> law(static_cast<size_t>(answers()));
    for (int b = 0; b < batch.batch; ++b)
      for (int t = from; t < to; ++t, probabilities += answers()) {
        const int16_t symbol = batch.symbol[static_cast<size_t>(b) * batch.frames + t];
        if (symbol == kPaddingFrame) {
          std::fill_n(probabilities, answers(), 0.0F);
          continue;
        }
        Oracle& filter = *filters_[static_cast<size_t>(b)];
        filter.frame(symbol);
        of_next_ ? filter.next_classes(law.data()) : filter.mean_law(law.data());
        for (size_t c = 0; c < law.size(); ++c) probabilities[c] = static_cast<float>(law[c]);
      }
  }

 private:
  const RunData& data_;
  bool of_next_;
  std::vector<std::unique_ptr<Oracle>> filters_;
};

TEST(Ceilings, OfPredictObjectiveMatchMetricOfExactDistributions) {
  for (const char* task : {"task.number=1", "task.number=2", "task.number=3"}) {
    const ResolvedConfig config =
        test::small_config({"task.objective=predict", task, "task.gap_start=0", "task.test_gap_start=0"});
    const RunData data = make_data(config.values);
    EvaluationRequest request;
    request.split = Split::test;
    request.samples = 40;
    request.batch = 7;
    CeilingRequest ask;
    ask.samples = 40;
    const PredictCeiling ceiling = predict_ceiling(*data.task, ask);
    LawPredictor next(data, true), mean(data, false);
    EXPECT_NEAR(evaluate(next, *data.task, request).elements.value(), ceiling.counted, 1e-12) << task;
    EXPECT_NEAR(evaluate(mean, *data.task, request).kl, ceiling.kl_counted, 1e-5) << task;
    EXPECT_GT(ceiling.kl_counted, 0.001) << task;
  }
}

}  // namespace
}  // namespace sb
