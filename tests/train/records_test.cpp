// What a result keeps of a network once its weights are gone.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <numeric>

#include "../base/temporary_folder.h"
#include "grammar/build.h"
#include "small_run.h"
#include "tasks/ceiling.h"
#include "tasks/gap_task.h"
#include "train/gates.h"
#include "train/network_predictor.h"
#include "train/samples.h"

namespace sb {
namespace {

using test::small_config;

struct Subject {
  explicit Subject(const std::vector<std::string>& overrides)
      : config(small_config(overrides)), data(make_data(config.values)), trainer(config.values, data) {}
  ResolvedConfig config;
  RunData data;
  Trainer trainer;

  GateReport gates(const Task& task, int chunk = 1024) const {
    GateRequest ask;
    ask.samples = 6;
    ask.batch = 4;
    ask.chunk = chunk;
    ask.type = storage_type(config.values.train);
    return record_gates(trainer.network(), task, ask);
  }
};

int64_t values(const GateReport& report, bool gap) {
  const GateCounts& c = gap ? report.figures.gates.at(0).gap : report.figures.gates.at(0).data;
  return c.total;
}

TEST(Gates, CountEveryValueOfEveryRealFrame) {
  const Subject subject({"task.number=2"});
  const GateReport report = subject.gates(*subject.data.task);
  Batch frames;
  subject.data.task->fill(Split::test, 0, 6, frames);
  const int64_t data = 6 * 20,
                all = std::count_if(frames.element.begin(), frames.element.end(), [](int e) { return e >= 0; });
  ASSERT_FALSE(report.figures.gates.empty());
  const int64_t each = values(report, false) / data;
  EXPECT_EQ(values(report, false), each * data);
  EXPECT_EQ(values(report, true), each * (all - data));
  for (const auto& g : report.figures.gates) {
    EXPECT_EQ(std::accumulate(g.data.counts.begin(), g.data.counts.end(), int64_t{0}), g.data.total);
    EXPECT_EQ(g.data.counts.size(), static_cast<size_t>(kGateBins));
  }
  EXPECT_TRUE(report.figures.forget_selectivity);
}

TEST(Gates, FollowRequestedGap) {
  const Subject subject({"task.number=2"});
  const int64_t data = values(subject.gates(*subject.data.task), false);
  for (const int gap : {1, 7}) {
    const GateReport report = subject.gates(*subject.data.task->at(Split::test, gap));
    EXPECT_EQ(values(report, false), data);
    EXPECT_EQ(values(report, true), gap * data);
  }
  const GateReport none = subject.gates(*subject.data.task->at(Split::test, 0));
  EXPECT_EQ(values(none, true), 0);
  EXPECT_FALSE(none.figures.write_selectivity);  // nothing to compare with: not zero
  EXPECT_FALSE(none.figures.forget_selectivity);
}

TEST(Gates, ChunksEqualOnePass) {
  for (const auto& model : test::paper_models()) {
    const Subject subject({"task.number=2", "model.name=" + model, "train.precision=fp64"});
    const GateReport whole = subject.gates(*subject.data.task), pieces = subject.gates(*subject.data.task, 9);
    ASSERT_EQ(whole.figures.gates.size(), pieces.figures.gates.size()) << model;
    for (size_t i = 0; i < whole.figures.gates.size(); ++i) {
      EXPECT_EQ(whole.figures.gates[i].data.total, pieces.figures.gates[i].data.total) << model;
      EXPECT_NEAR(whole.figures.gates[i].gap.mean, pieces.figures.gates[i].gap.mean, 1e-9) << model;
    }
  }
}

TEST(Gates, DecaySpectraAreSortedAndExistForForgettingModels) {
  for (const char* model : {"mamba", "mamba2", "gla", "gated_delta_net", "gru", "s4", "retnet"}) {
    const Subject subject({std::string("model.name=") + model});
    const GateReport report = subject.gates(*subject.data.task);
    ASSERT_EQ(report.decays.size(), 2U) << model;
    for (const auto& spectrum : report.decays) {
      ASSERT_EQ(spectrum.quantiles.size(), 7U);
      EXPECT_TRUE(std::is_sorted(spectrum.quantiles.begin(), spectrum.quantiles.end())) << model;
      EXPECT_GT(spectrum.quantiles.front(), 0) << model;
      EXPECT_LE(spectrum.quantiles.back(), 1) << model;
    }
  }
  const Subject retnet({"model.name=retnet", "model.heads=2"});
  const auto decays = retnet.gates(*retnet.data.task).decays.at(0).quantiles;
  EXPECT_NEAR(decays.front(), 1 - 1.0 / 32, 1e-6);
  EXPECT_NEAR(decays.back(), 1 - 1.0 / 64, 1e-6);
  const Subject attention({"model.name=linear_attn"});
  EXPECT_TRUE(attention.gates(*attention.data.task).decays.empty());
}

TEST(Samples, ContainInputsAndExactFilter) {
  const Subject subject({"task.number=3", "task.length=60"});
  const auto samples = record_samples(subject.trainer.network(), *subject.data.task, Split::test, 16);
  ASSERT_EQ(samples.size(), static_cast<size_t>(recorded_samples));
  Batch frames;
  subject.data.task->fill(Split::test, 0, recorded_samples, frames);
  const std::unique_ptr<Oracle> filter = subject.data.task->oracle(Split::test);
  for (int b = 0; b < recorded_samples; ++b) {
    const SampleRecord& sample = samples[static_cast<size_t>(b)];
    EXPECT_EQ(sample.length, 60);
    ASSERT_EQ(sample.elements.size(), static_cast<size_t>(recorded_elements));
    const auto beliefs = follow(*filter, frames, b);
    for (int e = 0; e < recorded_elements; ++e) {
      const ElementRecord& element = sample.elements[static_cast<size_t>(e)];
      const int32_t* start = frames.start.data() + static_cast<size_t>(b) * 61;
      EXPECT_EQ(element.state, frames.state[static_cast<size_t>(b) * 60 + e]);
      EXPECT_EQ(element.symbol, frames.symbol[static_cast<size_t>(b) * frames.frames + start[e]]);
      EXPECT_EQ(element.gap_frames, start[e + 1] - start[e] - 1);
      ASSERT_FALSE(element.filter.empty());
      EXPECT_EQ(element.filter[0].state, beliefs[static_cast<size_t>(e)].summed_best);
      ASSERT_EQ(element.network.size(), static_cast<size_t>(recorded_states));
      for (size_t i = 1; i < element.network.size(); ++i) {
        EXPECT_LE(element.network[i].probability, element.network[i - 1].probability);
      }
      double sum = 0;
      for (const auto& share : element.filter) sum += share.probability;
      EXPECT_LE(sum, 1 + 1e-5);
    }
  }
}

TEST(Samples, PredictObjectiveSharesAreOfNextSymbol) {
  const Subject subject({"task.objective=predict"});
  const auto samples = record_samples(subject.trainer.network(), *subject.data.task, Split::test, 1024);
  for (const auto& element : samples.at(0).elements) {
    for (const auto* shares : {&element.network, &element.filter}) {
      for (const auto& share : *shares) EXPECT_LT(share.state, 6);
    }
  }
}

TEST(Baselines, AreInResultForSameTask) {
  const ResolvedConfig config = small_config({"task.number=2"});
  const test::TemporaryFolder root;
  test::work(config, root.path());
  const Result result = load_result(root.path() + "/" + config.run_id);
  ASSERT_TRUE(result.baselines);
  EXPECT_EQ(result.baselines->train_samples, 48);
  EXPECT_EQ(result.baselines->test_samples, 12);
  EXPECT_EQ(result.baselines->n_gram.size(), 8U);
  EXPECT_GT(*result.baselines->best_n_gram(), result.baselines->majority);
  EXPECT_GT(*result.baselines->n_gram_stderr, 0);
  EXPECT_EQ(result.samples.size(), 3U);
  EXPECT_TRUE(result.gates);
  const std::string text = read_file(root.path() + "/" + config.run_id + "/result.json", size_t{1} << 20);
  EXPECT_LT(text.size(), 200'000U);
}

TEST(Baselines, AreOmittedWithWarningOnError) {
  RunData data = make_data(small_config().values);
  const auto& task = dynamic_cast<const GapTask&>(*data.task);
  const auto automaton = build_automaton(small_config().values.grammar.build);
  const SamplerConfig impossible{0, task.language().length(), Stream::reference};  // refuses training samples
  data.task = std::make_shared<const GapTask>(std::make_shared<const Sampler>(automaton, impossible), task.config());
  std::vector<std::string> warnings;
  BaselineRequest ask{48, 12, 12, 1, "", {}, [&](const std::string& line) { warnings.push_back(line); }};
  EXPECT_FALSE(measured_baselines(data, ask));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("no baselines"), std::string::npos) << warnings[0];
}

TEST(Records, PollForStop) {
  const Subject subject({"task.number=2"});
  const auto stop = [] { return true; };
  GateRequest ask;
  ask.samples = 2;
  ask.stop = stop;
  EXPECT_THROW(record_gates(subject.trainer.network(), *subject.data.task, ask), Stopped);
  EXPECT_THROW(record_samples(subject.trainer.network(), *subject.data.task, Split::test, 16, stop), Stopped);
  EXPECT_THROW(measured_baselines(subject.data, {48, 12, 12, 1, "", stop, {}}), Stopped);
}

// Regression: rounds of 512 long samples delayed the stop of an interrupted run.
TEST(Ceiling, PollsForStopMoreOftenForLongSamples) {
  const auto automaton = build_automaton(small_config().values.grammar.build);
  const auto round = [&](int length, int threads) {
    const auto language = std::make_shared<const Sampler>(automaton, SamplerConfig{1, length, Stream::reference});
    return samples_a_round(GapTask(language, {}), Split::test, threads);
  };
  EXPECT_EQ(round(20, 2), 512U);
  EXPECT_EQ(round(1 << 14, 2), 4U);
  EXPECT_EQ(round(1 << 20, 3), 3U);
}

// With noise above 1, the filter's score is not a bound; the line says `upper bound`.
TEST(AccuracyText, NamesBoundAndItsSamples) {
  Measurement m;
  m.accuracy = 0.76;
  m.stderr_ = 0.02;
  m.samples = 10;
  m.ceiling = CeilingFigure{};
  m.ceiling->accuracy = 0.938;
  m.ceiling->stderr_ = 0.003;
  m.ceiling->upper_bound = 0.95;
  m.ceiling->samples = 20;
  m.ceiling->exact = true;
  EXPECT_EQ(accuracy_text(m),
            "accuracy 0.7600 (s.e. 0.0200) over 10 samples, ceiling 0.9380 (s.e. 0.0030) over 20 samples");
  m.ceiling->exact = false;
  EXPECT_EQ(accuracy_text(m),
            "accuracy 0.7600 (s.e. 0.0200) over 10 samples, upper bound 0.9500 (s.e. 0.0030) over 20 samples");
  m.samples = m.ceiling->samples = 1;
  m.stderr_ = m.ceiling->stderr_ = 0;
  EXPECT_EQ(accuracy_text(m), "accuracy 0.7600 over 1 sample, upper bound 0.9500 over 1 sample")
      << "which has no spread";
}

TEST(Baselines, AreOmittedForPredictObjective) {
  const ResolvedConfig config = small_config({"task.objective=predict"});
  const test::TemporaryFolder root;
  ASSERT_EQ(test::work(config, root.path()), RunStatus::done);
  const Result result = load_result(root.path() + "/" + config.run_id);
  EXPECT_FALSE(result.baselines);
  ASSERT_TRUE(result.test->kl && result.test->ceiling && result.test->ceiling->kl);
  EXPECT_LT(*result.test->ceiling->kl, *result.test->kl);  // nothing was learnt in twelve updates
  EXPECT_TRUE(result.test->confusion.empty());
}

TEST(WithGap, ChangesGapsOfRequestedSplit) {
  const RunData data = make_data(small_config({"task.number=2"}).values);
  for (const Split split : {Split::train, Split::test, Split::reference}) {
    Batch frames;
    data.task->at(split, 5)->fill(split, 0, 2, frames);
    EXPECT_EQ(frames.real_frames(0), 20 * 6) << to_string(split);
  }
}

}  // namespace
}  // namespace sb
