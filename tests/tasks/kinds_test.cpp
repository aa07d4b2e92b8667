// The kinds of tasks behind the registry, and the two that ship as examples.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "../base/expect.h"
#include "base/error.h"
#include "base/file.h"
#include "kind_example.h"
#include "tasks/ceiling.h"
#include "tasks/evaluate.h"
#include "tasks/ngram_source.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

using test::example;

TEST(TaskRegistry, FindsEveryKindAndSuggestsTheNearest) {
  const std::vector<std::string> kinds = task_kinds();
  EXPECT_EQ(kinds.front(), "gaps") << "the default";
  for (const char* kind : {"copying", "tracking"}) EXPECT_EQ(std::count(kinds.begin(), kinds.end(), kind), 1) << kind;
  for (const TaskRow& row : task_registry()) {
    EXPECT_EQ(find_task(row.name).name, row.name);
    EXPECT_FALSE(row.about.title.empty());
    for (const TaskKey& key : row.keys) EXPECT_FALSE(key.meaning.empty()) << key.name;
  }
  EXPECT_TRUE(has(error_line([] { find_task("copyng"); }), "did you mean copying?"));
  TaskRow taken = find_task("copying");
  EXPECT_THROW(register_task(taken), Error);
}

TEST(TaskRegistry, ChecksRowsBeforeTheyAreRegistered) {
  const auto refusal = [](const std::function<void(TaskRow&)>& change) -> std::string {
    TaskRow row = find_task("tracking");
    row.name = "stranger";
    row.keys.push_back({"shape", std::string("round"), 0, 0, "shape", {"round", "square"}});
    change(row);
    const size_t before = task_registry().size();
    try {
      register_task(row);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input);
      EXPECT_EQ(task_registry().size(), before);
      return error.what();
    }
    return "registered";
  };
  EXPECT_EQ(refusal([](TaskRow& row) { row.axis->most = 100001; }),
            "[stranger, eval.missing] range of the test axis, expected least <= most within 0..100000, got 0..100001");
  const std::vector<std::pair<std::function<void(TaskRow&)>, std::string>> cases = {
      {[](TaskRow& row) { row.axis->least = -1; }, "got -1..100"},
      {[](TaskRow& row) { row.axis->least = 101; }, "got 101..100"},
      {[](TaskRow& row) { row.axis->key = "every"; }, "[stranger, eval.every] this name is reserved"},
      {[](TaskRow& row) { row.axis->key = "Missing"; }, "key of the test axis"},
      {[](TaskRow& row) { row.axis->name = "gap"; }, "name of the test axis"},
      {[](TaskRow& row) { row.axis->name = "two words"; }, "name of the test axis"},
      {[](TaskRow& row) { row.axis->title = ""; }, "title"},
      {[](TaskRow& row) { row.name = "Stranger"; }, "[task.kind] name of a kind"},
      {[](TaskRow& row) { row.name = "7"; }, "[task.kind] name of a kind"},
      {[](TaskRow& row) { row.make = nullptr; }, "make"},
      {[](TaskRow& row) { row.length = 0; }, "length, expected at least 1, got 0"},
      {[](TaskRow& row) { row.keys[0].name = "length"; }, "[stranger, task.length] this name is reserved"},
      {[](TaskRow& row) { row.keys[0].name = "noise"; }, "[stranger, task.noise] this name is reserved"},
      {[](TaskRow& row) { row.keys[0].name = "a.b"; }, "name of a key"},
      {[](TaskRow& row) { row.keys[1].name = row.keys[0].name; }, "[stranger, task.decay] duplicate key"},
      {[](TaskRow& row) { row.keys[0].initial = 1.5; }, "default, expected 0..0.9999, got 1.5"},
      {[](TaskRow& row) { row.keys[0].least = 2; }, "range, expected finite numbers with least <= most, got 2..0.9999"},
      {[](TaskRow& row) { row.keys[2].most = 30.5; }, "range, expected whole numbers"},
      {[](TaskRow& row) { row.keys[3].initial = std::string("oval"); }, "expected one of the choices, got 'oval'"},
      {[](TaskRow& row) { row.keys[3].meaning = ""; }, "[stranger, task.shape] meaning"},
      {[](TaskRow& row) { row.keys[3].file = true; }, "[stranger, task.shape] a file has neither default nor choices"},
  };
  for (const auto& [change, expected] : cases) {
    const std::string line = refusal(change);
    EXPECT_NE(line.find(expected), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

TEST(TaskRegistry, KnowsTheUsualLossOfKinds) {
  EXPECT_EQ(usual_loss("tracking"), Loss::squared_error);
  EXPECT_EQ(usual_loss("copying"), Loss::cross_entropy);
  EXPECT_EQ(usual_loss("gaps"), Loss::cross_entropy);
  EXPECT_EQ(usual_loss("not here"), std::nullopt);
  for (const TaskRow& row : task_registry())
    EXPECT_EQ(row.name == kGapsKind ? Loss::cross_entropy : example(row.name, 6)->shape().loss, row.loss) << row.name;
}

TEST(TaskRegistry, ThePageShowsTheFileOfTheExample) {
  const auto text = [](const char* path) { return read_file(SB_SOURCE_DIR "/" + std::string(path), size_t{1} << 20); };
  const std::string fence = "```cpp\n" + text("src/tasks/kinds/copying.cpp") + "```";
  EXPECT_NE(text("docs/add-a-task.md").find(fence), std::string::npos);
}

TEST(TaskRegistry, TextsOfTasks) {
  EXPECT_EQ(task_text("2").title, "Task 2: noise rejection");
  EXPECT_EQ(task_text("copying").title, "Copying");
  EXPECT_EQ(task_text("not here").title, "not here");
}

// Task 2 on a small grammar.
TaskSetup small_gaps() {
  TaskSetup setup;
  setup.gaps = paper_task(2);
  setup.length = 20;
  setup.grammar.vocab = 6;
  setup.grammar.ambiguities = 2;
  setup.grammar.depth = 3;
  setup.grammar.density = 0.4 / 3;
  return setup;
}

TEST(TaskRegistry, SizesAreThoseOfTheTask) {
  const TaskSetup setup = small_gaps();
  const std::shared_ptr<const Task> task = make_task(setup);
  const std::array points = {30, 7};
  const TaskSize size = task_size(setup, points);
  EXPECT_EQ(size.channels, task->shape().channels);
  EXPECT_EQ(size.answers, task->shape().answers);
  EXPECT_EQ(size.max_train_frames, task->max_frames(Split::train));
  EXPECT_DOUBLE_EQ(size.train_frames, task->mean_frames(Split::train));
  EXPECT_DOUBLE_EQ(size.test_frames, task->mean_frames(Split::test));
  ASSERT_EQ(size.point_frames.size(), points.size());
  for (size_t i = 0; i < points.size(); ++i)
    EXPECT_DOUBLE_EQ(size.point_frames[i], task->at(Split::test, points[i])->mean_frames(Split::test));
}

TEST(TaskRegistry, StagesOfGapsShareWhatTakesLongToBuild) {
  TaskSetup setup = small_gaps();
  const std::shared_ptr<const Task> task = make_task(setup);
  const auto gaps_of = [](const std::shared_ptr<const Task>& made) -> const GapTask& {
    return dynamic_cast<const GapTask&>(*made);
  };
  setup.gaps.train.max = 4;
  const std::shared_ptr<const Task> shorter_gaps = make_stage(*task, setup);
  EXPECT_EQ(&gaps_of(shorter_gaps).language(), &gaps_of(task).language());
  EXPECT_EQ(shorter_gaps->canonical_text(), make_task(setup)->canonical_text());
  setup.length = 12;
  EXPECT_EQ(make_stage(*task, setup)->canonical_text(), make_task(setup)->canonical_text());
  setup.grammar.vocab = 9;
  EXPECT_EQ(make_stage(*task, setup)->shape().channels, 6) << "no automaton is built";
  setup.kind = "copying";
  setup.keys = {{"symbols", int64_t{4}}};
  EXPECT_EQ(make_stage(*make_task(setup), setup)->shape().elements, 24) << "kinds without make_stage are made anew";
}

TEST(GapTask, NgramsNameStatesAndNoiseAboveOneHidesSymbols) {
  TaskSetup setup;
  setup.gaps = paper_task(2);
  setup.grammar.vocab = 6;
  setup.grammar.ambiguities = 2;
  setup.grammar.depth = 3;
  setup.grammar.density = 0.4 / 3;
  EXPECT_NE(make_task(setup)->ngrams(), nullptr);
  EXPECT_FALSE(make_task(setup)->hides_symbols());
  setup.gaps.noise = 1.1;
  EXPECT_TRUE(make_task(setup)->hides_symbols());
  setup.gaps.objective = Objective::predict;
  EXPECT_EQ(make_task(setup)->ngrams(), nullptr);
}

// Every kind but gaps, which has tests of its own: also those that are added later.
std::vector<std::string> other_kinds() {
  std::vector<std::string> kinds = task_kinds();
  std::erase(kinds, kGapsKind);
  return kinds;
}

TEST(Kinds, OraclesExpectWhatTheyScore) {
  for (const std::string& kind : other_kinds()) {
    const auto task = example(kind, 6);
    CeilingRequest request;
    request.samples = 400;
    if (task->shape().loss == Loss::squared_error) {
      if (!task->estimator(Split::test)) continue;
      const ErrorCeiling ceiling = error_ceiling(*task, request);
      EXPECT_NEAR(ceiling.counted, ceiling.mse, 4 * std::hypot(ceiling.stderr_, ceiling.counted_stderr)) << kind;
    } else if (task->oracle(Split::test) && !task->has_law()) {
      const Ceiling ceiling = exact_ceiling(*task, request);
      const double error = std::hypot(ceiling.stderr_, ceiling.filter_stderr);
      EXPECT_NEAR(ceiling.filter_accuracy, ceiling.accuracy, 4 * error + 1e-9) << kind;
    }
  }
}

TEST(Kinds, BatchesMatchTheShape) {
  for (const std::string& kind : other_kinds()) {
    const auto task = example(kind, 6);
    const TaskShape shape = task->shape();
    Batch batch;
    task->fill(Split::train, 0, 20, batch);
    EXPECT_EQ(batch.elements, shape.elements) << kind;
    EXPECT_EQ(batch.channels, shape.channels) << kind;
    EXPECT_EQ(batch.dense.empty(), !shape.dense) << kind;
    EXPECT_EQ(batch.value.empty(), shape.loss != Loss::squared_error) << kind;
    std::vector<int32_t> answers(static_cast<size_t>(batch.elements));
    int asked = 0;
    for (int b = 0; b < batch.batch; ++b) {
      EXPECT_LE(batch.real_frames(b), task->max_frames(Split::train)) << kind;
      task->answers(batch, b, answers.data());
      for (const int32_t answer : answers) {
        EXPECT_LT(answer, shape.answers) << kind;
        asked += answer >= 0;
      }
    }
    EXPECT_GT(asked, 0) << kind;
    const auto& axis = find_task(kind).axis;
    if (!axis) continue;
    for (const int point : {axis->least, axis->least + 1}) {
      const auto other = task->at(Split::test, point);
      EXPECT_EQ(other->shape().channels, shape.channels) << kind;
      EXPECT_EQ(other->shape().answers, shape.answers) << kind << ": a trained network must fit";
      EXPECT_EQ(other->canonical_text(), task->at(Split::test, point)->canonical_text()) << kind;
    }
    EXPECT_NE(task->at(Split::test, axis->least)->canonical_text(),
              task->at(Split::test, axis->least + 1)->canonical_text())
        << kind;
  }
}

TEST(Kinds, SamplesDependOnSeedSplitAndIndexOnly) {
  for (const std::string& kind : other_kinds()) {
    const auto task = example(kind, 6);
    Batch together, alone;
    const std::vector<uint64_t> samples{4, 9, 2};
    task->fill(Split::valid, samples, together, 20);
    EXPECT_EQ(together.frames, 20);
    const auto real = static_cast<size_t>(task->max_frames(Split::valid));
    const auto channels = static_cast<size_t>(task->shape().channels);
    for (size_t b = 0; b < samples.size(); ++b) {
      task->fill(Split::valid, samples[b], 1, alone);
      std::vector<float> a(20 * channels), c(real * channels);
      expand_row(together, static_cast<int>(b), 0, 20, a.data());
      expand_row(alone, 0, 0, static_cast<int>(real), c.data());
      EXPECT_TRUE(std::equal(c.begin(), c.end(), a.begin())) << kind;
      EXPECT_EQ(std::count(a.begin() + static_cast<std::ptrdiff_t>(c.size()), a.end(), 0.0F), 20 * channels - c.size())
          << "padding";
    }
    EXPECT_THROW(task->fill(Split::valid, samples, together, 3), Error) << "shorter than a sample";
    EXPECT_NE(task->canonical_text(), example(kind, 7)->canonical_text());
  }
}

// Other values of the key, as far as the kind takes them.
std::vector<TaskValue> other_values(const TaskKey& key) {
  if (const auto* whole = std::get_if<int64_t>(&key.initial))
    return {*whole + (static_cast<double>(*whole) < key.most ? 1 : -1)};
  if (std::holds_alternative<double>(key.initial)) return {(key.least + key.most) / 2};
  return {key.choices.begin(), key.choices.end()};
}

TEST(Kinds, EqualTextsMeanEqualSamplesAlsoOnTheTestAxis) {
  int changed = 0;
  const auto expect_equal_samples = [](const Task& a, const Task& b, const std::string& what) {
    Batch one, other;
    a.fill(Split::test, 0, 5, one);
    b.fill(Split::test, 0, 5, other);
    EXPECT_TRUE(one.symbol == other.symbol && one.target == other.target && one.dense == other.dense) << what;
  };
  for (const std::string& kind : other_kinds()) {
    const TaskRow& row = find_task(kind);
    const auto task = example(kind, 20);
    const int point = kind == "text" ? 2 : 50;  // a distance of 50 tokens is longer than the sample
    for (const TaskKey& key : row.keys) {
      for (const TaskValue& value : other_values(key)) {
        std::shared_ptr<const Task> other;
        try {
          other = example(kind, 20, {{key.name, value}});
        } catch (const Error&) {
          continue;  // does not go with the defaults of other keys
        }
        if (task->canonical_text() != other->canonical_text()) {
          ++changed;
          continue;
        }
        expect_equal_samples(*task, *other, kind + ": " + key.name);
        if (row.axis && row.axis->least <= point && point <= row.axis->most)
          expect_equal_samples(*task->at(Split::test, point), *other->at(Split::test, point),
                               kind + " at: " + key.name);
      }
    }
  }
  EXPECT_GT(changed, 20);
}

TEST(Copying, AsksForTheStringInTheSecondHalfOnly) {
  const auto task = example("copying", 5, {{"symbols", int64_t{3}}});
  Batch batch;
  task->fill(Split::test, 0, 40, batch);
  std::vector<int32_t> answers(10), seen(3);
  for (int b = 0; b < 40; ++b) {
    task->answers(batch, b, answers.data());
    const int16_t* symbol = batch.symbol.data() + static_cast<size_t>(b) * 10;
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(answers[static_cast<size_t>(i)], -1);
      EXPECT_EQ(symbol[5 + i], kBlankFrame);
      EXPECT_EQ(answers[static_cast<size_t>(5 + i)], symbol[i]);
      ++seen.at(static_cast<size_t>(symbol[i]));
    }
  }
  for (const int32_t count : seen) EXPECT_GT(count, 40) << "200 symbols of 3";
}

TEST(Copying, ItsOracleIsAlwaysRight) {
  const auto task = example("copying", 6);
  CeilingRequest request;
  request.samples = 20;
  const Ceiling ceiling = exact_ceiling(*task, request);
  EXPECT_DOUBLE_EQ(ceiling.accuracy, 1);
  EXPECT_TRUE(std::isnan(ceiling.by_position[5]));
  EXPECT_EQ(ceiling.by_position[6], 1);
  const auto longer = task->at(Split::test, 30);
  OraclePredictor oracle(*longer, Split::test);
  EvaluationRequest ask;
  ask.split = Split::test;
  ask.samples = 20;
  ask.chunk = 7;
  const Evaluation found = evaluate(oracle, *longer, ask);
  EXPECT_EQ(found.elements.total, 20 * 30);
  EXPECT_EQ(found.elements.value(), 1);
}

// Solves a x = b for a symmetric positive definite matrix.
std::vector<double> solved(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = i + 1; k < n; ++k) {
      const double factor = a[k][i] / a[i][i];
      for (size_t j = i; j < n; ++j) a[k][j] -= factor * a[i][j];
      b[k] -= factor * b[i];
    }
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t j = i + 1; j < n; ++j) b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
  }
  return b;
}

// Mean and variance of x_t given y_s of the frames s <= t that are shown, from the joint normal distribution of all.
std::pair<double, double> conditioned(const Batch& batch, int t, double decay, double noise) {
  std::vector<int> shown;
  for (int s = 0; s <= t; ++s)
    if (batch.dense[static_cast<size_t>(2 * s + 1)] == 1) shown.push_back(s);
  std::vector<std::vector<double>> of_shown(shown.size(), std::vector<double>(shown.size()));
  std::vector<double> with_t, y;
  for (size_t i = 0; i < shown.size(); ++i) {
    for (size_t j = 0; j < shown.size(); ++j)
      of_shown[i][j] = std::pow(decay, std::abs(shown[i] - shown[j])) + (i == j ? noise * noise : 0);
    with_t.push_back(std::pow(decay, t - shown[i]));
    y.push_back(batch.dense[static_cast<size_t>(2 * shown[i])]);
  }
  const std::vector<double> weight = solved(of_shown, with_t);
  double mean = 0, variance = 1;
  for (size_t i = 0; i < shown.size(); ++i) {
    mean += weight[i] * y[i];
    variance -= weight[i] * with_t[i];
  }
  return {mean, variance};
}

TEST(Tracking, TheKalmanFilterConditionsOnAllFramesSoFar) {
  for (const auto& [decay, noise, missing] : {std::tuple{0.9, 0.5, int64_t{30}}, {0.5, 2.0, 70}, {0.99, 0.01, 0}}) {
    const auto task = example("tracking", 15, {{"decay", decay}, {"sensor_noise", noise}, {"missing", missing}});
    const std::unique_ptr<Estimator> filter = task->estimator(Split::test);
    Batch batch;
    for (uint64_t sample = 0; sample < 5; ++sample) {
      task->fill(Split::test, sample, 1, batch);
      filter->reset();
      for (int t = 0; t < 15; ++t) {
        filter->frame(batch.dense.data() + 2 * t);
        double mean = 0, variance = 0;
        filter->estimate(&mean, &variance);
        const auto [expected, spread] = conditioned(batch, t, decay, noise);
        EXPECT_NEAR(mean, expected, 1e-9) << "frame " << t;
        EXPECT_NEAR(variance, spread, 1e-9) << "frame " << t;
      }
    }
  }
}

TEST(Tracking, ItsSamplesHaveTheStatedLaw) {
  const auto task = example("tracking", 50, {{"decay", 0.8}, {"sensor_noise", 0.5}, {"missing", int64_t{25}}});
  Batch batch;
  task->fill(Split::train, 0, 400, batch);
  double squares = 0, products = 0, noise = 0, shown = 0;
  for (size_t at = 0; at < 400 * 50; ++at) {
    const double x = batch.value[at];
    squares += x * x;
    if (at % 50 > 0) products += x * batch.value[at - 1];
    if (batch.dense[2 * at + 1] == 0) {
      EXPECT_EQ(batch.dense[2 * at], 0);
      continue;
    }
    ++shown;
    noise += (batch.dense[2 * at] - x) * (batch.dense[2 * at] - x);
  }
  EXPECT_NEAR(squares / (400 * 50), 1, 0.05);
  EXPECT_NEAR(products / (400 * 49), 0.8, 0.05);
  EXPECT_NEAR(noise / shown, 0.25, 0.01);
  EXPECT_NEAR(shown / (400 * 50), 0.75, 0.02);
}

// The task's estimator as a model.
class Estimating final : public Predictor {
 public:
  explicit Estimating(const Task& task) : task_(task) {}
  int answers() const override { return task_.shape().answers; }
  void begin(const Batch& batch) override {
    filters_.clear();
    for (int b = 0; b < batch.batch; ++b) filters_.push_back(task_.estimator(batch.split));
    for (const auto& filter : filters_) filter->reset();
  }
  void predict(const Batch& batch, int from, int to, float* out) override {
    std::vector<float> frame(static_cast<size_t>(batch.channels));
    for (int b = 0; b < batch.batch; ++b) {
      for (int t = from; t < to; ++t) {
        expand_row(batch, b, t, t + 1, frame.data());
        filters_[static_cast<size_t>(b)]->frame(frame.data());
        double mean = 0, variance = 0;
        filters_[static_cast<size_t>(b)]->estimate(&mean, &variance);
        *out++ = static_cast<float>(mean);
      }
    }
  }

 private:
  const Task& task_;
  std::vector<std::unique_ptr<Estimator>> filters_;
};

TEST(Tracking, TheMetricIsTheSquaredErrorAndTheCeilingItsExpectation) {
  const auto task = example("tracking", 30);
  CeilingRequest request;
  request.samples = 400;
  request.threads = 1;
  const ErrorCeiling ceiling = error_ceiling(*task, request);
  EXPECT_NEAR(ceiling.counted, ceiling.mse, 4 * std::hypot(ceiling.stderr_, ceiling.counted_stderr));
  EXPECT_GT(ceiling.by_position[0], ceiling.by_position[20]) << "more is known later";
  request.threads = 3;
  EXPECT_EQ(error_ceiling(*task, request).mse, ceiling.mse);

  Estimating filter(*task);
  EvaluationRequest ask;
  ask.split = Split::test;
  ask.samples = 400;
  ask.chunk = 11;
  ask.breakdowns = true;
  const Evaluation found = evaluate(filter, *task, ask);
  EXPECT_NEAR(found.loss, ceiling.counted, 1e-6);
  EXPECT_NEAR(found.stderr_, ceiling.counted_stderr, 1e-3 * ceiling.counted_stderr);
  EXPECT_EQ(found.frames, 400 * 30);

  const auto blind = task->at(Split::test, 100);
  EXPECT_NEAR(error_ceiling(*blind, request).mse, 1, 1e-9) << "nothing is shown";
  EXPECT_THROW(exact_ceiling(*task, request), Error);
  EXPECT_THROW(error_ceiling(*example("copying", 3), request), Error);
}

TEST(Tracking, AnOutputThatIsNotFiniteIsNamed) {
  const auto task = example("tracking", 4);
  Batch batch;
  task->fill(Split::test, 3, 1, batch);
  MetricAccumulator metrics(*task);
  metrics.begin(batch);
  const std::vector<float> outputs{0, 0, std::nanf(""), 0};
  try {
    metrics.logits(0, 4, outputs.data());
    FAIL() << "taken";
  } catch (const NotFinite& seen) {
    EXPECT_EQ(seen.sample, 3);
    EXPECT_EQ(seen.frame, 2);
  }
}

}  // namespace
}  // namespace sb
