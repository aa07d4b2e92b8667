// Counters: its samples, and its oracle against enumeration of every sequence of strings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "../base/expect.h"
#include "base/error.h"
#include "grammar/brackets.h"
#include "tasks/ceiling.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

struct CounterSizes {
  int types = 1, share = 1, children = 0, passes = 3, count = 4, length = 12;
};

std::shared_ptr<const Task> counters_task(const CounterSizes& s, int64_t as_task = 0, int64_t test_length = 0) {
  TaskSetup setup;
  setup.kind = "counters";
  setup.seed = 5;
  setup.length = s.length;
  setup.keys = {{"types", int64_t{s.types}},   {"share", int64_t{s.share}}, {"children", int64_t{s.children}},
                {"passes", int64_t{s.passes}}, {"count", int64_t{s.count}}, {"test_length", test_length},
                {"as_task", as_task}};
  return make_task(setup);
}

// Sums the probabilities of all strings and wrong symbols that show these frames, by the symbol that follows. Written
// from docs/tasks.md, without the language.
class StringEnumeration {
 public:
  StringEnumeration(const CounterSizes& sizes, double gap, int start)
      : s_(sizes),
        rules_(bracket_rules({.seed = 5, .types = sizes.types, .children = std::max(1, sizes.children)})),
        gap_(gap),
        start_(start) {}

  int classes() const { return s_.passes * symbols(); }

  std::vector<double> posterior(const std::vector<int16_t>& frames) {
    frames_ = frames;
    sums_.assign(static_cast<size_t>(classes()), 0.0);
    element(0, 0, {}, 1.0);
    double total = 0;
    for (const double sum : sums_) total += sum;
    for (double& sum : sums_) sum /= total;
    return sums_;
  }

 private:
  struct Place {
    std::vector<int> string = {};
    int pass = 0, shown = 0;  // symbols of this pass
  };
  struct Option {
    int symbol;
    double probability;
    Place place;
  };

  int symbols() const { return (s_.types + s_.share - 1) / s_.share; }
  int symbol(int pass, int type) const {
    return pass * symbols() + (pass % 2 == 0 ? type / s_.share : type % symbols());
  }
  std::vector<int> followers(const Place& place) const {
    if (place.string.empty()) return rules_[0];
    if (s_.children == 0) return {place.string.back()};
    return rules_[static_cast<size_t>(place.string.back()) + 1];
  }

  std::vector<Option> options(const Place& place) const {
    const auto shows = [&](int pass, int at) {
      return Option{symbol(pass, place.string[static_cast<size_t>(at)]), 1, {place.string, pass, at + 1}};
    };
    const int n = static_cast<int>(place.string.size());
    if (place.pass > 0) {
      if (place.shown < n) return {shows(place.pass, place.shown)};
      if (place.pass + 1 < s_.passes) return {shows(place.pass + 1, 0)};
      return options({});
    }
    std::vector<Option> out;
    const double ends = n == 0 ? 0 : 1.0 / (s_.count - n + 1);
    if (n > 0) {
      out.push_back(shows(1, 0));
      out.back().probability = ends;
    }
    if (n == s_.count) return out;
    const std::vector<int> types = followers(place);
    for (const int type : types) {
      Place longer = place;
      longer.string.push_back(type);
      ++longer.shown;
      out.push_back({symbol(0, type), (1 - ends) / static_cast<double>(types.size()), longer});
    }
    return out;
  }

  void element(int number, size_t at, const Place& before, double weight) {
    if (number == s_.length) return;
    for (const Option& option : options(before)) {
      if (option.symbol != frames_[at]) continue;
      const double now = weight * option.probability;
      const std::vector<Option> next = options(option.place);
      if (at + 1 == frames_.size()) {
        ask(next, now);
        continue;
      }
      std::vector<int> wrong;
      for (int c = 0; c < classes(); ++c)
        if (std::none_of(next.begin(), next.end(), [&](const Option& o) { return o.symbol == c; })) wrong.push_back(c);
      const double gap = wrong.empty() || number < start_ ? 0 : gap_;
      element(number + 1, at + 1, option.place, now * (1 - gap));
      if (gap == 0 || std::count(wrong.begin(), wrong.end(), frames_[at + 1]) == 0) continue;
      const double shown = now * gap / static_cast<double>(wrong.size());
      if (at + 2 == frames_.size())
        ask(next, shown);
      else
        element(number + 1, at + 2, option.place, shown);
    }
  }

  void ask(const std::vector<Option>& next, double weight) {
    for (const Option& option : next) sums_[static_cast<size_t>(option.symbol)] += weight * option.probability;
  }

  CounterSizes s_;
  std::vector<std::vector<int>> rules_;
  double gap_;
  int start_;
  std::vector<int16_t> frames_;
  std::vector<double> sums_;
};

// Compares the oracle with enumeration at every frame; returns the wrong symbols seen.
int expect_enumerated(const CounterSizes& sizes, int64_t as_task, double gap, int start, int samples) {
  const auto task = counters_task(sizes, as_task);
  const std::unique_ptr<Oracle> oracle = task->oracle(Split::test);
  StringEnumeration enumeration(sizes, gap, start);
  EXPECT_EQ(task->shape().answers, enumeration.classes());
  Batch batch;
  int wrong = 0;
  std::vector<double> found(static_cast<size_t>(enumeration.classes()));
  for (int sample = 0; sample < samples; ++sample) {
    task->fill(Split::test, static_cast<uint64_t>(sample), 1, batch);
    oracle->reset();
    for (int t = 0; t < batch.frames; ++t) {
      wrong += batch.gap[static_cast<size_t>(t)];
      oracle->frame(batch.symbol[static_cast<size_t>(t)]);
      oracle->posterior(found.data());
      const auto expected = enumeration.posterior({batch.symbol.begin(), batch.symbol.begin() + t + 1});
      for (size_t c = 0; c < found.size(); ++c) EXPECT_NEAR(found[c], expected[c], 1e-12) << sample << " " << t;
      const int32_t target = batch.target[static_cast<size_t>(t)];
      EXPECT_TRUE(target < 0 || expected[static_cast<size_t>(target)] > 0) << "the true answer";
    }
  }
  return wrong;
}

TEST(Counters, ItsOracleEqualsEnumeration) {
  for (const CounterSizes& sizes :
       {CounterSizes{}, CounterSizes{.passes = 2}, CounterSizes{.passes = 5, .count = 3, .length = 20},
        CounterSizes{.types = 3, .children = 2, .passes = 2, .count = 3},
        CounterSizes{.types = 4, .share = 2, .passes = 3, .count = 3},
        CounterSizes{.types = 4, .share = 2, .children = 2, .passes = 2, .count = 3},
        CounterSizes{.types = 5, .share = 3, .children = 3, .passes = 4, .count = 2, .length = 10}})
    expect_enumerated(sizes, 0, 0, 0, 20);
}

TEST(Counters, ItsOracleEqualsEnumerationWithWrongSymbols) {
  const int wrong =
      expect_enumerated({.passes = 3, .count = 3, .length = 60}, 3, 0.1, 50, 30) +
      expect_enumerated({.types = 2, .children = 1, .passes = 2, .count = 3, .length = 60}, 3, 0.1, 50, 30);
  EXPECT_GT(wrong, 20);
}

TEST(Counters, OneTypeGivesEqualCountsOfEveryLetter) {
  const auto task = counters_task({.passes = 3, .count = 4, .length = 400});
  EXPECT_EQ(task->shape().channels, 3);
  Batch batch;
  task->fill(Split::train, 0, 50, batch);
  std::map<int, int> counts;
  for (size_t b = 0; b < 50; ++b) {
    const int16_t* symbol = batch.symbol.data() + b * 400;
    for (int at = 0; at + 12 <= 400;) {
      int n = 0;
      while (symbol[at + n] == 0) ++n;
      for (int i = 0; i < 3 * n; ++i) ASSERT_EQ(symbol[at + i], i / n);
      ++counts[n];
      at += 3 * n;
    }
    for (size_t t = 0; t < 400; ++t) EXPECT_EQ(batch.target[b * 400 + t], t == 399 ? -1 : symbol[t + 1]);
  }
  ASSERT_EQ(counts.size(), 4U);
  int strings = 0;
  for (const auto& [n, count] : counts) strings += count;
  for (const auto& [n, count] : counts) EXPECT_NEAR(count, strings / 4.0, 5 * std::sqrt(strings * 3 / 16.0)) << n;
}

TEST(Counters, SeveralTypesAgreeInTheOrderOfTheString) {
  const auto task = counters_task({.types = 3, .children = 2, .passes = 2, .count = 5, .length = 300});
  EXPECT_EQ(task->shape().channels, 6);
  Batch batch;
  task->fill(Split::valid, 0, 20, batch);
  bool mixed = false;
  for (size_t b = 0; b < 20; ++b) {
    const int16_t* symbol = batch.symbol.data() + b * 300;
    for (int at = 0; at + 10 <= 300;) {
      int n = 0;
      while (symbol[at + n] < 3) ++n;
      ASSERT_LE(n, 5);
      for (int i = 0; i < n; ++i) ASSERT_EQ(symbol[at + n + i], symbol[at + i] + 3);
      mixed |= n > 1 && symbol[at] != symbol[at + 1];
      at += 2 * n;
    }
  }
  EXPECT_TRUE(mixed);
}

TEST(Counters, CeilingsWithGapsAndAmbiguousSymbols) {
  CeilingRequest request;
  request.samples = 200;
  for (const int64_t as_task : {0, 1, 2, 3}) {
    const CounterSizes sizes{.types = 4, .share = 2, .children = 2, .passes = 2, .count = 5, .length = 80};
    const auto task = counters_task(sizes, as_task);
    const Ceiling ceiling = exact_ceiling(*task, request);
    const double error = std::hypot(ceiling.stderr_, ceiling.filter_stderr);
    EXPECT_NEAR(ceiling.filter_accuracy, ceiling.accuracy, 4 * error) << as_task;
    EXPECT_GT(ceiling.accuracy, 0.5) << as_task;
    EXPECT_LT(ceiling.accuracy, 0.95) << as_task;
  }
  // a^n b^n c^n: only the number of a is unknown. Per string of n, n * 2 symbols are certain, and after the i-th a the
  // better guess is right with probability max(N - i, 1) / (N - i + 1).
  const int most = 10;
  double right = 0, all = 0;
  for (int n = 1; n <= most; ++n) {
    all += 3 * n;
    right += 2 * n;
    for (int i = 1; i <= n; ++i) right += std::max(most - i, 1) / (most - i + 1.0);
  }
  const Ceiling ceiling = exact_ceiling(*counters_task({.passes = 3, .count = most, .length = 1000}), request);
  EXPECT_NEAR(ceiling.accuracy, right / all, 0.005);
}

TEST(Counters, TheTestAxisChangesCountAndLength) {
  const CounterSizes sizes{.types = 4, .share = 2, .children = 2, .passes = 2, .count = 3, .length = 20};
  const auto task = counters_task(sizes, 0, 90);
  EXPECT_EQ(task->shape().elements, 20);
  const auto longer = task->at(Split::test, 7);
  EXPECT_EQ(longer->shape().elements, 90);
  EXPECT_EQ(longer->shape().answers, task->shape().answers);
  Batch batch, direct;
  longer->fill(Split::test, 0, 10, batch);
  CounterSizes same = sizes;
  same.count = 7;
  same.length = 90;
  counters_task(same)->fill(Split::test, 0, 10, direct);
  EXPECT_EQ(batch.symbol, direct.symbol) << "the same rules";
  EXPECT_EQ(batch.target, direct.target);
}

TEST(Counters, RefusesWhatItCannotMake) {
  const auto refusal = [](const CounterSizes& sizes) { return error_line([&] { counters_task(sizes); }); };
  EXPECT_EQ(refusal({.types = 3, .share = 4}), "[task.share] expected at most types (3), got 4");
  EXPECT_EQ(refusal({.types = 3, .children = 4}), "[task.children] expected at most types (3), got 4");
  EXPECT_EQ(
      refusal({.types = 4, .children = 4, .passes = 2, .count = 12}),
      "[task.count] count 12 with 4 types, 4 children and 2 passes needs more than 65536 states, expected a smaller "
      "count, or fewer types, children or passes");
  EXPECT_EQ(refusal({.passes = 3, .count = 400}).substr(0, 33), "[task.count] count 400 with 1 typ");
  EXPECT_EQ(refusal({.passes = 3, .count = 350}), "");
  EXPECT_EQ(refusal({.passes = 2, .count = 1000}), "");
}

}  // namespace
}  // namespace sb
