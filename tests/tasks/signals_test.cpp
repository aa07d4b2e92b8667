// Signals: vectors of an automaton's symbols under autoregressive noise, and their exact filter.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "base/error.h"
#include "grammar/build.h"
#include "kind_example.h"
#include "random/normal.h"
#include "tasks/ceiling.h"
#include "tasks/evaluate.h"

namespace sb {
namespace {

using test::example;

constexpr int kSeed = 7;  // of example()

struct Small {
  int vocab = 3, ambiguities = 1, depth = 2, dimensions = 2;
  double noise = 0.7, correlation = 0.8;
  int pause_min = 0, pause_max = 2;

  std::map<std::string, TaskValue> keys() const {
    return {{"vocab", int64_t{vocab}},         {"ambiguities", int64_t{ambiguities}},
            {"depth", int64_t{depth}},         {"dimensions", int64_t{dimensions}},
            {"sensor_noise", noise},           {"correlation", correlation},
            {"pause_min", int64_t{pause_min}}, {"pause_max", int64_t{pause_max}}};
  }
  std::shared_ptr<const Automaton> automaton() const {
    const int states = vocab - ambiguities + ambiguities * depth;
    return build_automaton({.vocab = vocab,
                            .ambiguities = ambiguities,
                            .depth = depth,
                            .start_states = std::min(4, states - 1),
                            .seed = kSeed});
  }
  // [symbols * dimensions]
  std::vector<double> means() const {
    const PhiloxStream stream(kSeed, 0, 0, Purpose::noise);
    std::vector<double> out;
    for (uint32_t i = 0; out.size() < static_cast<size_t>(vocab * dimensions); i += 2) {
      const auto [u, v] = normal_pair(stream.word(i), stream.word(i + 1));
      out.insert(out.end(), {u, v});
    }
    out.resize(static_cast<size_t>(vocab * dimensions));
    return out;
  }
};

struct Path {
  double probability = 1;
  std::vector<int32_t> state;  // of each frame
  std::vector<bool> paused;
};

// Every sequence of states and pauses over the first frames.
void all_paths(const Automaton& a, const std::vector<double>& pauses, size_t frames, const Path& so_far, int32_t state,
               const std::function<void(const Path&)>& visit) {
  const auto element = [&](int32_t next, double p) {
    for (size_t n = 0; n < pauses.size(); ++n) {
      if (pauses[n] == 0) continue;
      Path path = so_far;
      path.probability *= p * pauses[n];
      for (size_t i = 0; i <= n && path.state.size() < frames; ++i) {
        path.state.push_back(next);
        path.paused.push_back(i > 0);
      }
      if (path.state.size() == frames)
        visit(path);
      else
        all_paths(a, pauses, frames, path, next, visit);
    }
  };
  if (state == a.end) {
    for (const int32_t s : a.start) element(s, 1.0 / static_cast<double>(a.start.size()));
  } else {
    for (int edge = a.row[state]; edge < a.row[state + 1]; ++edge) element(a.dst[edge], a.prob[edge]);
  }
}

// log density of `x`, up to a constant, under a normal law with covariance noise^2 correlation^|i - j|: by elimination
// on the whole matrix, not by the Markov property.
double log_density(const Small& small, const std::vector<double>& x) {
  const size_t n = x.size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j)
      a[i][j] = small.noise * small.noise *
                std::pow(small.correlation, std::abs(static_cast<double>(i) - static_cast<double>(j)));
    a[i][n] = x[i];
  }
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    sum -= 0.5 * a[i][n] * a[i][n] / a[i][i];
    for (size_t k = i + 1; k < n; ++k) {
      const double factor = a[k][i] / a[i][i];
      for (size_t j = i; j <= n; ++j) a[k][j] -= factor * a[i][j];
    }
  }
  return sum;
}

std::vector<double> enumerated_posterior(const Small& small, const Batch& batch, size_t frames) {
  const auto automaton = small.automaton();
  const std::vector<double> means = small.means();
  const GapLaw law = small.pause_max == 0                 ? GapLaw::none
                     : small.pause_min == small.pause_max ? GapLaw::constant
                                                          : GapLaw::uniform;
  const std::vector<double> pauses = gap_length_law({.law = law, .min = small.pause_min, .max = small.pause_max});
  std::vector<double> posterior(static_cast<size_t>(automaton->states()));
  double total = 0;
  const auto dimensions = static_cast<size_t>(small.dimensions);
  all_paths(*automaton, pauses, frames, {}, automaton->end, [&](const Path& path) {
    double log_likelihood = 0;
    for (size_t d = 0; d < dimensions; ++d) {
      std::vector<double> noise;
      for (size_t t = 0; t < frames; ++t) {
        const auto symbol = static_cast<size_t>(automaton->symbol[static_cast<size_t>(path.state[t])]);
        noise.push_back(batch.dense[t * dimensions + d] - (path.paused[t] ? 0 : means[symbol * dimensions + d]));
      }
      log_likelihood += log_density(small, noise);
    }
    const double weight = path.probability * std::exp(log_likelihood);
    posterior[static_cast<size_t>(automaton->id[static_cast<size_t>(path.state.back())])] += weight;
    total += weight;
  });
  for (double& p : posterior) p /= total;
  return posterior;
}

TEST(Signals, TheFilterEqualsTheEnumerationOfAllPaths) {
  constexpr int frames = 6;
  for (const Small& small :
       {Small{}, Small{.noise = 2, .correlation = 0}, Small{.dimensions = 3, .noise = 0.3, .correlation = 0.99},
        Small{.pause_min = 1, .pause_max = 1}, Small{.pause_min = 0, .pause_max = 0},
        Small{.vocab = 4, .ambiguities = 2, .depth = 3, .noise = 1.5, .pause_min = 1, .pause_max = 3}}) {
    const auto task = example("signals", frames, small.keys());
    const std::unique_ptr<Oracle> filter = task->oracle(Split::test);
    double spread = 0;
    for (uint64_t sample = 0; sample < 4; ++sample) {
      Batch batch;
      task->fill(Split::test, sample, 1, batch);
      filter->reset();
      for (int t = 0; t < frames; ++t) {
        filter->batch_frame(batch, 0, t);
        std::vector<double> found(static_cast<size_t>(filter->states()));
        static_cast<Oracle&>(*filter).posterior(found.data());
        const std::vector<double> expected = enumerated_posterior(small, batch, static_cast<size_t>(t) + 1);
        for (size_t s = 0; s < found.size(); ++s) {
          EXPECT_NEAR(found[s], expected[s], 1e-9) << "sample " << sample << ", frame " << t << ", state " << s;
          spread = std::max(spread, std::min(expected[s], 1 - expected[s]));
        }
      }
    }
    EXPECT_GT(spread, 0.01) << "some state was in doubt";
  }
}

TEST(Signals, TheNoiseGoesOnThroughPauses) {
  const Small small{.dimensions = 3, .noise = 0.6, .correlation = 0.9, .pause_min = 1, .pause_max = 4};
  const auto task = example("signals", 200, small.keys());
  const auto automaton = small.automaton();
  const std::vector<double> means = small.means();
  std::vector<int32_t> symbol(static_cast<size_t>(automaton->states()));
  for (size_t s = 0; s < symbol.size(); ++s) symbol[static_cast<size_t>(automaton->id[s])] = automaton->symbol[s];
  Batch batch;
  task->fill(Split::train, 0, 300, batch);
  double squares = 0, products[4] = {}, counts[4] = {}, frames = 0;
  const auto noise = [&](size_t at, size_t d) {
    const auto shown = static_cast<size_t>(symbol[static_cast<size_t>(batch.state[at])]);
    return batch.dense[3 * at + d] - (batch.gap[at] ? 0 : means[3 * shown + d]);
  };
  for (size_t at = 0; at < 300 * 200; ++at) {
    for (size_t d = 0; d < 3; ++d) {
      squares += noise(at, d) * noise(at, d);
      if (at % 200 == 0) continue;
      const size_t pair = size_t{batch.gap[at - 1]} * 2 + batch.gap[at];  // data or pause, twice
      products[pair] += noise(at - 1, d) * noise(at, d);
      ++counts[pair];
    }
    ++frames;
  }
  EXPECT_NEAR(squares / (3 * frames), 0.36, 0.02);
  EXPECT_EQ(counts[0], 0) << "a pause follows every element";
  for (const size_t pair : {1, 2, 3}) EXPECT_NEAR(products[pair] / counts[pair], 0.9 * 0.36, 0.02) << pair;
}

TEST(Signals, StatesFollowTheAutomatonAndPausesTheirLaw) {
  const Small small{.vocab = 6, .ambiguities = 3, .depth = 3, .pause_min = 2, .pause_max = 4};
  const auto task = example("signals", 300, small.keys());
  const auto automaton = small.automaton();
  std::vector<int32_t> of_id(static_cast<size_t>(automaton->states()));
  for (size_t s = 0; s < of_id.size(); ++s) of_id[static_cast<size_t>(automaton->id[s])] = static_cast<int32_t>(s);
  Batch batch;
  task->fill(Split::valid, 0, 200, batch);
  std::vector<double> pauses(5);
  std::map<std::pair<int32_t, int32_t>, double> steps;
  std::map<int32_t, double> departures;
  for (size_t b = 0; b < 200; ++b) {
    int pause = 0;
    for (size_t t = 1; t < 300; ++t) {
      const size_t at = b * 300 + t;
      EXPECT_EQ(batch.target[at], batch.state[at]);
      if (batch.gap[at]) {
        EXPECT_EQ(batch.state[at], batch.state[at - 1]) << "a pause keeps its state";
        ++pause;
        continue;
      }
      ++pauses.at(static_cast<size_t>(pause));
      pause = 0;
      const int32_t from = of_id[static_cast<size_t>(batch.state[at - 1])],
                    to = of_id[static_cast<size_t>(batch.state[at])];
      ++steps[{from, to}];
      ++departures[from];
    }
  }
  const double all = pauses[2] + pauses[3] + pauses[4];
  EXPECT_EQ(pauses[0] + pauses[1], 0);
  EXPECT_NEAR(pauses[3] / all, 0.5, 0.02) << "both ends have half the weight";
  EXPECT_NEAR(pauses[2] / all, 0.25, 0.02);
  for (const auto& [step, count] : steps) {
    const auto [from, to] = step;
    double p = 0;
    if (from == automaton->end)
      p = static_cast<double>(std::count(automaton->start.begin(), automaton->start.end(), to)) /
          static_cast<double>(automaton->start.size());
    else
      for (int edge = automaton->row[from]; edge < automaton->row[from + 1]; ++edge)
        if (automaton->dst[edge] == to) p += automaton->prob[edge];
    const double n = departures[from];
    EXPECT_NEAR(count / n, p, 4.5 * std::sqrt(p * (1 - p) / n) + 1e-9) << from << " to " << to;
  }
}

TEST(Signals, TheCeilingIsWhatTheFilterScores) {
  const auto task = example("signals", 60, {{"sensor_noise", 1.5}});
  CeilingRequest request;
  request.samples = 300;
  const Ceiling ceiling = exact_ceiling(*task, request);
  EXPECT_TRUE(ceiling.exact);
  EXPECT_DOUBLE_EQ(ceiling.accuracy, ceiling.upper_bound) << "every frame is an element of its own";
  EXPECT_NEAR(ceiling.filter_accuracy, ceiling.accuracy, 4 * std::hypot(ceiling.stderr_, ceiling.filter_stderr));
  OraclePredictor oracle(*task, Split::test);
  EvaluationRequest ask;
  ask.split = Split::test;
  ask.samples = 300;
  ask.chunk = 17;
  EXPECT_NEAR(evaluate(oracle, *task, ask).elements.value(), ceiling.filter_accuracy, 1e-3);
  const double clean = exact_ceiling(*example("signals", 60, {{"sensor_noise", 0.1}}), request).accuracy;
  EXPECT_GT(clean, ceiling.accuracy + 0.01);
  const double white =
      exact_ceiling(*example("signals", 60, {{"sensor_noise", 1.5}, {"correlation", 0.0}}), request).accuracy;
  EXPECT_GT(ceiling.accuracy, white + 0.05) << "pauses tell the noise";
}

TaskSetup default_setup(int length) {
  TaskSetup out;
  out.kind = "signals";
  out.length = length;
  for (const TaskKey& key : find_task("signals").keys) out.keys[key.name] = key.initial;
  return out;
}

TEST(Signals, StagesOfAScheduleShareTheAutomaton) {
  TaskSetup setup = default_setup(30);
  for (const char* key : {"vocab", "ambiguities", "depth"}) setup.keys[key] = int64_t{40};
  setup.keys["ambiguities"] = int64_t{39};
  const auto task = make_task(setup);
  setup.keys["sensor_noise"] = 0.5;
  setup.keys["pause_max"] = int64_t{4};
  setup.keys["dimensions"] = int64_t{5};
  const Poll refuse = [] { throw std::runtime_error("an automaton is built"); };
  ASSERT_THROW(make_task(setup, refuse), std::runtime_error) << "large enough to call it";
  const auto stage = make_stage(*task, setup, refuse), made = make_task(setup);
  EXPECT_EQ(stage->canonical_text(), made->canonical_text());
  Batch one, other;
  stage->fill(Split::train, 5, 2, one);
  made->fill(Split::train, 5, 2, other);
  EXPECT_EQ(one.dense, other.dense);
  EXPECT_EQ(one.state, other.state);
  setup.keys["depth"] = int64_t{41};
  EXPECT_THROW(make_stage(*task, setup, refuse), std::runtime_error);
}

TEST(Signals, ThePauseOfTheTestIsAnAxis) {
  const auto task = example("signals", 65);  // 6.5 frames per element
  const auto longer = task->at(Split::test, 20);
  EXPECT_EQ(longer->max_frames(Split::test), 210) << "as many elements";
  Batch batch;
  longer->fill(Split::test, 3, 1, batch);
  for (size_t t = 0; t < 210; ++t) EXPECT_EQ(batch.gap[t], t % 21 == 0 ? 0 : 1);
  EXPECT_THROW(example("signals", 9, {{"pause_min", int64_t{3}}, {"pause_max", int64_t{2}}}), Error);
  EXPECT_THROW(example("signals", 9, {{"ambiguities", int64_t{12}}}), Error);
  const TaskSetup setup = default_setup(65);
  const std::array points = {20};
  const TaskSize size = task_size(setup, points);
  EXPECT_EQ(size.channels, task->shape().channels);
  EXPECT_EQ(size.answers, task->shape().answers);
  EXPECT_EQ(size.train_frames, 65);
  EXPECT_EQ(size.test_frames, 65);
  EXPECT_EQ(size.point_frames, std::vector<double>{210});
}

}  // namespace
}  // namespace sb
