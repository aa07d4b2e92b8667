// Tasks made for these tests: evaluation, metrics and ceiling know neither automata nor gaps.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "tasks/automata.h"
#include "tasks/ceiling.h"
#include "tasks/evaluate.h"
#include "tasks/gap_task.h"
#include "tasks/partly_asked.h"

namespace sb {
namespace {

// Running parity of bits, a blank after every second one; the answer to the last bit is not asked. Its oracle counts.
class Parity final : public Task {
 public:
  explicit Parity(bool known) : known_(known) {}
  TaskShape shape() const override { return {2, 2, 6}; }
  std::string canonical_text() const override { return "parity\n"; }
  int max_frames(Split) const override { return 9; }
  double mean_frames(Split) const override { return 9; }
  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    out = {};
    out.batch = static_cast<int>(samples.size());
    out.frames = std::max(9, pad_to);
    out.elements = 6;
    out.channels = 2;
    out.split = split;
    out.samples.assign(samples.begin(), samples.end());
    const size_t cells = samples.size() * static_cast<size_t>(out.frames);
    out.symbol.assign(cells, kPaddingFrame);
    out.gap.assign(cells, 0);
    out.target.assign(cells, -1);
    out.element.assign(cells, -1);
    for (size_t b = 0; b < samples.size(); ++b) {
      size_t at = b * static_cast<size_t>(out.frames);
      int32_t parity = 0;
      for (int32_t e = 0; e < 6; ++e) {
        out.start.push_back(static_cast<int32_t>(at - b * static_cast<size_t>(out.frames)));
        const auto bit = static_cast<int16_t>(samples[b] >> e & 1);
        parity ^= bit;
        out.state.push_back(parity);
        for (int n = 0; n <= e % 2; ++n, ++at) {
          out.symbol[at] = n == 0 ? bit : kBlankFrame;
          out.gap[at] = n > 0;
          out.target[at] = parity;
          out.element[at] = e;
        }
      }
      out.start.push_back(9);
    }
  }
  void answers(const Batch& batch, int row, int32_t* out) const override {
    for (int e = 0; e < 6; ++e) out[e] = e < 5 ? batch.state[static_cast<size_t>(row) * 6 + e] : -1;
  }
  std::unique_ptr<Oracle> oracle(Split) const override { return known_ ? std::make_unique<Counter>() : nullptr; }

 private:
  class Counter final : public Oracle {
   public:
    int states() const override { return 2; }
    int classes() const override { return 2; }
    bool exact() const override { return true; }
    void reset() override { parity_ = 0; }
    void frame(int16_t symbol) override { parity_ ^= symbol == 1; }
    Belief belief(int) const override { return {parity_, 1, 0}; }
    void posterior(std::vector<StateProbability>& out, int) const override { out = {{parity_, 1.0}}; }
    double probability(int32_t id, int) const override { return id == parity_ ? 1 : 0; }
    void next_classes(double*, int) const override {}
    void mean_law(double*, int) const override {}

   private:
    int32_t parity_ = 0;
  };
  bool known_;
};

// Says parity, but for every fourth sample, where it says the opposite.
class Counting final : public Predictor {
 public:
  int answers() const override { return 2; }
  void begin(const Batch& batch) override { parity_.assign(static_cast<size_t>(batch.batch), 0); }
  void predict(const Batch& batch, int from, int to, float* probabilities) override {
    for (size_t b = 0; b < parity_.size(); ++b) {
      for (int t = from; t < to; ++t, probabilities += 2) {
        parity_[b] ^= batch.symbol[b * static_cast<size_t>(batch.frames) + t] == 1;
        const int said = batch.samples[b] % 4 == 0 ? 1 - parity_[b] : parity_[b];
        probabilities[said] = 0.9F;
        probabilities[1 - said] = 0.1F;
      }
    }
  }

 private:
  std::vector<int> parity_;
};

// Parity that asks for the first asked(index) elements of a sample.
class UnevenParity final : public test::PartlyAsked {
 public:
  explicit UnevenParity(int (*asked)(uint64_t index)) : PartlyAsked(parity()), asked_(asked) {}
  void answers(const Batch& batch, int row, int32_t* out) const override {
    all_.answers(batch, row, out);
    std::fill(out + asked_(batch.samples[static_cast<size_t>(row)]), out + batch.elements, -1);
  }

 private:
  static const Parity& parity() {
    static const Parity out(false);
    return out;
  }

  int (*asked_)(uint64_t index);
};

TEST(Interfaces, SamplesThatAskForNothingHaveNoPartInStandardError) {
  Counting model;
  EvaluationRequest ask;
  ask.samples = 64;
  const UnevenParity odd([](uint64_t i) { return i % 2 == 1 ? 3 : 0; });  // the samples that Counting answers rightly
  const Evaluation result = evaluate(model, odd, ask);
  EXPECT_EQ(result.elements.value(), 1);
  EXPECT_EQ(result.stderr_, 0);
}

TEST(Interfaces, StandardErrorIsThatOfARatioIfSamplesAskUnevenly) {
  Counting model;
  EvaluationRequest ask;
  ask.samples = 64;
  const Evaluation result = evaluate(model, UnevenParity([](uint64_t i) { return 1 + static_cast<int>(i % 5); }), ask);
  // The jackknife leaves out one sample at a time. Samples 0, 4, 8, ... are wrong in all they ask.
  double right = 0, total = 0;
  const auto asked = [](int i) { return 1.0 + i % 5; };
  const auto correct = [&](int i) { return i % 4 == 0 ? 0.0 : asked(i); };
  for (int i = 0; i < 64; ++i) {
    right += correct(i);
    total += asked(i);
  }
  double mean = 0, squares = 0;
  for (int i = 0; i < 64; ++i) {
    const double without = (right - correct(i)) / (total - asked(i));
    mean += without / 64;
    squares += without * without / 64;
  }
  EXPECT_DOUBLE_EQ(result.elements.value(), right / total);
  const double jackknife = std::sqrt(63 * (squares - mean * mean));
  EXPECT_NEAR(result.stderr_, jackknife, 0.02 * jackknife);
  const double of_even_samples = std::sqrt(0.75 * 0.25 / 63);
  EXPECT_GT(jackknife, 1.05 * of_even_samples) << "else this test tells nothing";
}

TEST(Interfaces, EvaluationAcceptsAnyTask) {
  const Parity known(true), unknown(false);
  Counting model;
  EvaluationRequest ask;
  ask.samples = 8;
  ask.batch = 3;
  ask.chunk = 4;
  ask.breakdowns = true;
  const Evaluation result = evaluate(model, known, ask);
  EXPECT_EQ(result.elements.total, 8 * 5) << "the last is not asked";
  EXPECT_DOUBLE_EQ(result.elements.value(), 0.75);
  EXPECT_EQ(result.frames, 8 * 7);
  EXPECT_NEAR(result.loss, -(0.75 * std::log(0.9) + 0.25 * std::log(0.1)), 1e-7);
  EXPECT_EQ(result.by_position[5].total, 0);
  EXPECT_EQ(result.by_gap_frame[1].total, 8 * 2);
  EXPECT_EQ(result.by_since_certain[0].total, 8 * 5) << "the oracle is always certain";
  EXPECT_TRUE(result.confusion.empty());
  EXPECT_EQ(result.kl, 0);

  const Evaluation alone = evaluate(model, unknown, ask);
  EXPECT_DOUBLE_EQ(alone.elements.value(), 0.75);
  EXPECT_EQ(alone.by_since_certain[0].total, 0);
}

// Guesses a coin, then sees it: the guess is not asked for, except in every third sample. The oracle is uncertain only
// of guesses.
class Coin final : public Task {
 public:
  TaskShape shape() const override { return {2, 2, 2}; }
  std::string canonical_text() const override { return "coin\n"; }
  int max_frames(Split) const override { return 2; }
  double mean_frames(Split) const override { return 2; }
  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int) const override {
    out = {};
    out.batch = static_cast<int>(samples.size());
    out.frames = out.elements = out.channels = 2;
    out.split = split;
    out.samples.assign(samples.begin(), samples.end());
    for (const uint64_t sample : samples) {
      const auto side = static_cast<int16_t>(sample / 3 % 2);
      for (const int16_t symbol : {kBlankFrame, side}) out.symbol.push_back(symbol);
      for (const int32_t e : {0, 1}) {
        out.gap.push_back(0);
        out.element.push_back(e);
        out.start.push_back(e);
        out.state.push_back(side);
        out.target.push_back(side);
      }
      out.start.push_back(2);
    }
  }
  void answers(const Batch& batch, int row, int32_t* out) const override {
    const auto b = static_cast<size_t>(row);
    out[0] = batch.samples[b] % 3 == 0 ? batch.state[2 * b] : -1;
    out[1] = batch.state[2 * b + 1];
  }
  std::unique_ptr<Oracle> oracle(Split) const override { return std::make_unique<Guess>(); }

 private:
  class Guess final : public Oracle {
   public:
    int states() const override { return 2; }
    int classes() const override { return 2; }
    bool exact() const override { return true; }
    void reset() override { seen_ = -1; }
    void frame(int16_t symbol) override { seen_ = symbol; }
    Belief belief(int) const override { return seen_ < 0 ? Belief{0, 0.5, std::log(2)} : Belief{seen_, 1, 0}; }
    using Oracle::posterior;
    void posterior(std::vector<StateProbability>& out, int) const override {
      if (seen_ < 0) {
        out = {{0, 0.5}, {1, 0.5}};
      } else {
        out = {{seen_, 1.0}};
      }
    }
    double probability(int32_t id, int) const override { return seen_ < 0 ? 0.5 : id == seen_ ? 1 : 0; }
    void next_classes(double*, int) const override {}
    void mean_law(double*, int) const override {}

   private:
    int32_t seen_ = -1;
  };
};

TEST(Interfaces, CeilingCountsOnlyAskedElements) {
  CeilingRequest request;
  request.samples = 12;
  const Ceiling ceiling = exact_ceiling(Coin(), request);
  EXPECT_NEAR(ceiling.accuracy, (12 + 4 * 0.5) / 16, 1e-12);
  EXPECT_NEAR(ceiling.upper_bound, (12 + 4 * 0.5) / 16, 1e-12);
  EXPECT_NEAR(ceiling.filter_accuracy, (12 + 2) / 16.0, 1e-12) << "heads of two guesses in four";
  EXPECT_NEAR(ceiling.mean_entropy, 4 * std::log(2) / 16, 1e-12);
  EXPECT_DOUBLE_EQ(ceiling.by_position[0], 0.5);
  EXPECT_DOUBLE_EQ(ceiling.by_position[1], 1);

  const Coin task;
  OraclePredictor oracle(task, Split::test);
  EvaluationRequest ask;
  ask.split = Split::test;
  ask.samples = 12;
  EXPECT_DOUBLE_EQ(evaluate(oracle, task, ask).elements.value(), ceiling.filter_accuracy) << "as the metric counts";

  const Ceiling parity = exact_ceiling(Parity(true), request);
  EXPECT_TRUE(std::isnan(parity.by_position[5])) << "never asked for";
}

TEST(Interfaces, EvaluationRejectsPredictorOfWrongWidth) {
  Counting model;
  const GapTask task(test::sampler(test::forked(), 9), paper_task(0));
  EXPECT_THROW(evaluate(model, task, {}), Error);
}

TEST(MetricAccumulator, DoesNotDependOnChunksBatchesAndThreads) {
  const GapTask task(test::sampler(test::forked(), 30), paper_task(2));
  const auto scored = [&](int batch, int chunk, int threads) {
    OraclePredictor oracle(task, Split::valid, threads);
    EvaluationRequest ask;
    ask.samples = 20;
    ask.batch = batch;
    ask.chunk = chunk;
    ask.threads = threads;
    ask.breakdowns = true;
    return evaluate(oracle, task, ask);
  };
  const Evaluation one = scored(20, 10000, 1);
  for (const auto& [batch, chunk, threads] : {std::tuple{3, 7, 2}, {1, 1, 1}, {20, 64, 3}}) {
    const Evaluation other = scored(batch, chunk, threads);
    EXPECT_EQ(other.loss, one.loss);
    EXPECT_EQ(other.stderr_, one.stderr_);
    EXPECT_EQ(other.elements.right, one.elements.right);
    EXPECT_EQ(other.by_entropy[0].right, one.by_entropy[0].right);
  }
}

TEST(MetricAccumulator, RejectsMissingRepeatedOrUnorderedFrames) {
  const Parity task(false);
  Batch batch;
  task.fill(Split::test, 0, 2, batch);
  const std::vector<float> half(static_cast<size_t>(batch.batch) * batch.frames * 2, 0.5F);
  MetricAccumulator metrics(task);
  EXPECT_THROW(metrics.probabilities(0, 1, half.data()), Error) << "of no batch";
  metrics.begin(batch);
  metrics.probabilities(0, 4, half.data());
  EXPECT_THROW(metrics.probabilities(3, batch.frames, half.data()), Error) << "one twice";
  EXPECT_THROW(metrics.probabilities(5, batch.frames, half.data()), Error) << "one left out";
  EXPECT_THROW(metrics.probabilities(4, batch.frames + 1, half.data()), Error) << "one too many";
  EXPECT_THROW(metrics.end(), Error) << "the rest is missing";
  metrics.probabilities(4, batch.frames, half.data());
  metrics.end();
  EXPECT_EQ(metrics.result().samples, 2);
}

TEST(MetricAccumulator, AppliesSoftmaxToLogitsAndNamesNonFiniteOnes) {
  const Parity task(false);
  Batch batch;
  task.fill(Split::test, 11, 2, batch);
  std::vector<float> logits(size_t{2} * 9 * 2), probabilities(logits.size());
  for (size_t i = 0; i < logits.size(); i += 2) {
    logits[i] = static_cast<float>(i % 7) - 3;
    probabilities[i] = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logits[i]))));
    probabilities[i + 1] = 1 - probabilities[i];
  }
  MetricAccumulator from_logits(task), from_probabilities(task);
  for (MetricAccumulator* metrics : {&from_logits, &from_probabilities}) metrics->begin(batch);
  from_logits.logits(0, 9, logits.data());
  from_probabilities.probabilities(0, 9, probabilities.data());
  for (MetricAccumulator* metrics : {&from_logits, &from_probabilities}) metrics->end();
  EXPECT_NEAR(from_logits.result().loss, from_probabilities.result().loss, 1e-6);
  EXPECT_EQ(from_logits.result().elements.right, from_probabilities.result().elements.right);

  MetricAccumulator broken(task);
  broken.begin(batch);
  probabilities[(9 + 4) * 2] = std::nanf("");
  try {
    broken.probabilities(0, 9, probabilities.data());
    FAIL() << "taken";
  } catch (const NotFinite& seen) {
    EXPECT_EQ(seen.sample, 12);
    EXPECT_EQ(seen.frame, 4);
  }
}

}  // namespace
}  // namespace sb
