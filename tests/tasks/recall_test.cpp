// Recall: layouts of its samples, and its oracle against enumeration of all values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "../base/expect.h"
#include "base/error.h"
#include "tasks/ceiling.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

using RecallKeys = std::map<std::string, TaskValue>;

std::shared_ptr<const Task> recall_task(int length, const RecallKeys& keys = {}, uint64_t seed = 7) {
  TaskSetup setup;
  setup.kind = "recall";
  setup.seed = seed;
  setup.length = length;
  for (const TaskKey& key : find_task("recall").keys) setup.keys[key.name] = key.initial;
  for (const auto& [key, value] : keys) setup.keys.at(key) = value;
  return make_task(setup);
}

const RecallKeys kSelectiveCopying = {
    {"keys", int64_t{0}}, {"values", int64_t{3}}, {"layout", std::string("scattered")}};
const RecallKeys kInduction = {{"keys", int64_t{1}},
                               {"values", int64_t{15}},
                               {"layout", std::string("scattered")},
                               {"filler", std::string("values")}};

RecallKeys with(RecallKeys keys, const RecallKeys& more) {
  for (const auto& [key, value] : more) keys[key] = value;
  return keys;
}

TEST(Recall, PairsStandFirstAndEveryKeyIsAskedForOnce) {
  // Zoology's sizes (frames, pairs), with its vocabulary of 8,192 symbols.
  for (const auto& [length, pairs] : {std::pair{64, 4}, {128, 8}, {256, 16}, {512, 64}}) {
    const auto task = recall_task(
        length, {{"keys", int64_t{4096}}, {"values", int64_t{4096}}, {"pairs", int64_t{length == 512 ? pairs : 0}}});
    EXPECT_EQ(task->shape().channels, 8192);
    EXPECT_EQ(task->shape().answers, 4096);
    Batch batch;
    task->fill(Split::test, 0, 20, batch);
    for (int b = 0; b < 20; ++b) {
      const int16_t* symbol = batch.symbol.data() + static_cast<size_t>(b * length);
      const int32_t* target = batch.target.data() + static_cast<size_t>(b * length);
      std::map<int, int> value_of;
      for (int i = 0; i < pairs; ++i) {
        EXPECT_GE(symbol[2 * i], 4096);
        EXPECT_LT(symbol[2 * i + 1], 4096);
        EXPECT_TRUE(value_of.emplace(symbol[2 * i], symbol[2 * i + 1]).second) << "keys differ";
      }
      int asked = 0;
      for (int t = 0; t < length; ++t) {
        if (t < 2 * pairs || symbol[t] == kBlankFrame) {
          EXPECT_EQ(target[t], -1);
          EXPECT_EQ(batch.gap[static_cast<size_t>(b * length + t)], t < 2 * pairs ? 0 : 1);
          continue;
        }
        EXPECT_EQ(t % 2, 0);
        EXPECT_EQ(target[t], value_of.at(symbol[t]));
        value_of.erase(symbol[t]);
        ++asked;
      }
      EXPECT_EQ(asked, pairs);
    }
  }
}

TEST(Recall, DistancesOfQueriesFollowThePowerLaw) {
  constexpr int samples = 20000, slots = 6, length = 2 * 2 + 2 * slots;
  for (const double power : {0.01, 1.0, 2.5}) {
    const auto task = recall_task(length, {{"pairs", int64_t{2}}, {"power", power}});
    std::vector<double> law;
    for (int i = 0; i < slots; ++i) law.push_back(std::pow(i + 1, power - 1));
    double sum = 0;
    for (const double weight : law) sum += weight;
    for (double& weight : law) weight /= sum;
    std::vector<double> first(slots), second(slots);
    Batch batch;
    task->fill(Split::train, 0, samples, batch);
    for (int b = 0; b < samples; ++b) {
      const int16_t* symbol = batch.symbol.data() + static_cast<size_t>(b * length);
      for (int i = 0; i < slots; ++i) {
        first[static_cast<size_t>(i)] += symbol[4 + 2 * i] == symbol[0];
        second[static_cast<size_t>(i)] += symbol[4 + 2 * i] == symbol[2];
      }
    }
    for (size_t i = 0; i < slots; ++i) {
      double expected = 0;  // of the second: the first took another slot
      for (size_t j = 0; j < slots; ++j) expected += i == j ? 0 : law[j] * law[i] / (1 - law[j]);
      const auto error = [](double p) { return 5 * std::sqrt(p * (1 - p) / samples); };
      EXPECT_NEAR(first[i] / samples, law[i], error(law[i])) << power;
      EXPECT_NEAR(second[i] / samples, expected, error(expected)) << power;
    }
  }
}

TEST(Recall, ScatteredPairsHaveEveryPlacementEquallyOften) {
  constexpr int samples = 10000, length = 9;  // two pairs in seven frames: C(5, 2) placements
  const auto task =
      recall_task(length, {{"pairs", int64_t{2}}, {"keys", int64_t{5}}, {"layout", std::string("scattered")}});
  Batch batch;
  task->fill(Split::train, 0, samples, batch);
  std::map<std::set<int>, int> placements;
  int in_order = 0;
  for (int b = 0; b < samples; ++b) {
    const int16_t* symbol = batch.symbol.data() + static_cast<size_t>(b * length);
    std::set<int> keys;
    std::map<int, int> value_of;
    for (int t = 0; t < 7; ++t) {
      if (symbol[t] < 64) continue;
      keys.insert(t);
      value_of[symbol[t]] = symbol[t + 1];
    }
    ++placements[keys];
    in_order += symbol[7] == symbol[*keys.begin()];
    for (int t = 0; t < length; ++t)
      EXPECT_EQ(batch.target[static_cast<size_t>(b * length + t)], t < 7 ? -1 : value_of.at(symbol[t]));
  }
  EXPECT_EQ(placements.size(), 10U);
  for (const auto& [keys, count] : placements) EXPECT_NEAR(count, samples / 10, 5 * std::sqrt(samples * 0.09));
  EXPECT_NEAR(in_order, samples / 2, 5 * std::sqrt(samples) / 2) << "queries are in random order";
}

TEST(Recall, SelectiveCopyingAsksForScatteredValuesInOrder) {
  const auto task = recall_task(20, with(kSelectiveCopying, {{"pairs", int64_t{5}}}));
  EXPECT_EQ(task->shape().channels, 4);
  Batch batch;
  task->fill(Split::test, 0, 50, batch);
  std::set<std::vector<int>> places;
  for (size_t b = 0; b < 50; ++b) {
    std::vector<int> values, place;
    for (size_t t = 0; t < 20; ++t) {
      const int symbol = batch.symbol[b * 20 + t], target = batch.target[b * 20 + t];
      if (t < 15 && symbol != kBlankFrame) {
        values.push_back(symbol);
        place.push_back(static_cast<int>(t));
      }
      EXPECT_EQ(target, t < 15 ? -1 : values.at(t - 15));
      EXPECT_EQ(symbol == 3, t >= 15) << "the symbol that asks";
    }
    EXPECT_EQ(values.size(), 5U);
    places.insert(place);
  }
  EXPECT_GT(places.size(), 40U);
}

TEST(Recall, InductionAsksForTheSuccessorOfTheTrigger) {
  const auto task = recall_task(40, with(kInduction, {{"pairs", int64_t{1}}}));
  EXPECT_EQ(task->shape().channels, 16);
  for (const int length : {40, 300}) {
    const auto tested = task->at(Split::test, length);
    Batch batch;
    tested->fill(Split::test, 0, 20, batch);
    for (int b = 0; b < 20; ++b) {
      const int16_t* symbol = batch.symbol.data() + static_cast<size_t>(b * length);
      EXPECT_EQ(std::count(symbol, symbol + length, 15), 2);
      EXPECT_EQ(symbol[length - 1], 15);
      const int16_t* trigger = std::find(symbol, symbol + length, 15);
      const int32_t* target = batch.target.data() + static_cast<size_t>(b * length);
      EXPECT_EQ(target[length - 1], trigger[1]);
      EXPECT_EQ(std::count(target, target + length, -1), length - 1);
    }
  }
}

// Posterior of the value of each query, from all assignments of values to pairs. Pairs are found by their keys, or by
// their order.
std::vector<std::vector<double>> enumerated(const Batch& batch, int values, int keys, double wrong, int showings) {
  std::vector<std::pair<int, int>> shown;  // pair, value
  std::vector<int> pairs, queries;         // keys in order of their first showing; pairs asked for
  int key = -1;
  for (const int16_t symbol : batch.symbol) {
    const auto found = std::find(pairs.begin(), pairs.end(), symbol);
    const int pair = static_cast<int>(found - pairs.begin());
    if (static_cast<int>(shown.size()) == showings) {
      if (symbol >= values && (keys == 0 || found != pairs.end()))
        queries.push_back(keys == 0 ? static_cast<int>(queries.size()) : pair);
    } else if (symbol >= values) {
      if (found == pairs.end()) pairs.push_back(symbol);
      key = pair;
    } else if (symbol >= 0 && (keys == 0 || key >= 0)) {
      shown.emplace_back(keys == 0 ? static_cast<int>(shown.size()) : key, symbol);
      key = -1;
    }
  }
  const size_t count = keys == 0 ? shown.size() : pairs.size();
  std::vector<std::vector<double>> sums(count, std::vector<double>(static_cast<size_t>(values)));
  std::vector<int> assigned(count);
  double total = 0;
  for (bool more = true; more;) {
    double weight = 1;
    for (const auto& [pair, value] : shown)
      weight *= assigned[static_cast<size_t>(pair)] == value ? 1 - wrong : wrong / (values - 1);
    for (size_t i = 0; i < count; ++i) sums[i][static_cast<size_t>(assigned[i])] += weight;
    total += weight;
    size_t digit = 0;
    while (digit < count && ++assigned[digit] == values) assigned[digit++] = 0;
    more = digit < count;
  }
  std::vector<std::vector<double>> out;
  for (const int pair : queries) {
    out.push_back(sums[static_cast<size_t>(pair)]);
    for (double& each : out.back()) each /= total;
  }
  return out;
}

TEST(Recall, ItsOracleEqualsEnumeration) {
  const RecallKeys small = {
      {"keys", int64_t{5}}, {"values", int64_t{3}}, {"pairs", int64_t{3}}, {"passes", int64_t{3}}};
  const std::vector<std::tuple<RecallKeys, double, int>> cases = {
      {small, 0.3, 9},
      {with(small, {{"filler", std::string("values")}}), 0.9, 9},
      {with(small, {{"layout", std::string("scattered")}, {"filler", std::string("values")}}), 0.5, 9},
      {with(small, {{"layout", std::string("scattered")}, {"queries", int64_t{2}}}), 0.3, 9},
      {with(small, {{"passes", int64_t{1}}}), 0.0, 3},
      {with(kSelectiveCopying, {{"pairs", int64_t{4}}}), 0.2, 4},
  };
  for (const auto& [keys, wrong, showings] : cases) {
    const auto task = recall_task(30, with(keys, {{"wrong", wrong}}));
    const std::unique_ptr<Oracle> oracle = task->oracle(Split::test);
    Batch batch;
    for (uint64_t sample = 0; sample < 20; ++sample) {
      task->fill(Split::test, sample, 1, batch);
      const auto expected = enumerated(batch, 3, static_cast<int>(std::get<int64_t>(keys.at("keys"))), wrong, showings);
      size_t query = 0;
      oracle->reset();
      std::vector<double> found(3);
      for (int t = 0; t < 30; ++t) {
        oracle->frame(batch.symbol[static_cast<size_t>(t)]);
        if (batch.target[static_cast<size_t>(t)] < 0) continue;
        oracle->posterior(found.data());
        ASSERT_LT(query, expected.size());
        for (size_t v = 0; v < 3; ++v) EXPECT_NEAR(found[v], expected[query][v], 1e-12);
        ++query;
      }
      EXPECT_EQ(query, expected.size());
    }
  }
}

TEST(Recall, TheCeilingIsOneUnlessValuesAreWrong) {
  CeilingRequest request;
  request.samples = 300;
  for (const char* filler : {"blank", "values", "any"}) {
    const auto task = recall_task(64, {{"filler", std::string(filler)}, {"keys", int64_t{8}}});
    const Ceiling ceiling = exact_ceiling(*task, request);
    EXPECT_DOUBLE_EQ(ceiling.accuracy, 1) << filler;
    EXPECT_DOUBLE_EQ(ceiling.filter_accuracy, 1) << filler;
  }
  double before = 0.75;
  for (const int64_t passes : {1, 3, 5}) {
    const auto task = recall_task(64, {{"passes", passes}, {"wrong", 0.2}});
    const Ceiling ceiling = exact_ceiling(*task, request);
    EXPECT_NEAR(ceiling.filter_accuracy, ceiling.accuracy, 4 * std::hypot(ceiling.stderr_, ceiling.filter_stderr));
    if (passes == 1) {
      EXPECT_NEAR(ceiling.accuracy, 0.8, 1e-12);
    }
    EXPECT_GT(ceiling.accuracy, before) << "every showing helps";
    before = ceiling.accuracy + 0.01;
  }
}

TEST(Recall, TheTestAxisKeepsPairsOrTheirSpacing) {
  const auto asked = [](const Task& task) {
    Batch batch;
    task.fill(Split::test, 0, 1, batch);
    return batch.elements - std::count(batch.target.begin(), batch.target.end(), -1);
  };
  EXPECT_EQ(asked(*recall_task(64)->at(Split::test, 256)), 16);
  EXPECT_EQ(asked(*recall_task(64, {{"spacing", int64_t{4}}})->at(Split::test, 128)), 32);
  EXPECT_EQ(asked(*recall_task(64, {{"pairs", int64_t{4}}})->at(Split::test, 256)), 4);
}

TEST(Recall, RefusesWhatItCannotMake) {
  const auto refusal = [](int length, const RecallKeys& keys) {
    return error_line([&] { recall_task(length, keys); });
  };
  const std::string scattered = "scattered";
  EXPECT_EQ(refusal(64, {{"pairs", int64_t{65}}}), "[task.pairs] expected at most keys (64), got 65");
  EXPECT_EQ(refusal(64, {{"queries", int64_t{5}}}), "[task.queries] expected at most pairs (4), got 5");
  EXPECT_EQ(refusal(64, {{"pairs", int64_t{17}}}),
            "[task.length] 17 pairs and 17 queries, expected at least 68 frames, got 64");
  EXPECT_EQ(refusal(64, {{"pairs", int64_t{16}}}), "");
  EXPECT_EQ(refusal(64, {{"pairs", int64_t{22}}, {"layout", scattered}}),
            "[task.length] 22 pairs and 22 queries, expected at least 66 frames, got 64");
  EXPECT_EQ(refusal(64, {{"pairs", int64_t{4}}, {"passes", int64_t{1000}}}),
            "[task.length] 4 pairs and 4 queries, expected at least 8008 frames, got 64");
  EXPECT_EQ(refusal(64, {{"filler", std::string("any")}, {"layout", scattered}}),
            "[task.filler] expected blank or values with layout = scattered, got any");
  EXPECT_EQ(refusal(64, {{"keys", int64_t{0}}}), "[task.layout] expected scattered with keys = 0, got first");
  EXPECT_EQ(refusal(64, with(kSelectiveCopying, {{"filler", std::string("values")}})),
            "[task.filler] expected blank with keys = 0, got values");
  EXPECT_EQ(refusal(64, with(kSelectiveCopying, {{"queries", int64_t{1}}})),
            "[task.queries] expected 0 with keys = 0, which asks for every value, got 1");
  EXPECT_EQ(refusal(64, with(kSelectiveCopying, {{"passes", int64_t{2}}})),
            "[task.passes] expected 1 with keys = 0, got 2");
}

}  // namespace
}  // namespace sb
