// Brackets as a language and as a task, against enumeration of every bracket sequence.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "../base/expect.h"
#include "base/error.h"
#include "grammar/brackets.h"
#include "tasks/ceiling.h"
#include "tasks/filter.h"
#include "tasks/gap_task.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

std::shared_ptr<const Task> dyck_task(const BracketConfig& config, int64_t as_task = 0, int64_t test_length = 0) {
  TaskSetup setup;
  setup.kind = "dyck";
  setup.seed = config.seed;
  setup.length = config.length;
  setup.keys = {{"types", int64_t{config.types}},       {"share", int64_t{config.share}},
                {"children", int64_t{config.children}}, {"depth", int64_t{config.depth}},
                {"test_length", test_length},           {"as_task", as_task}};
  return make_task(setup);
}

// Sums the probabilities of all bracket sequences and wrong symbols that show these frames, by the type on top of the
// stack at the last frame (entry 0: empty). Written from docs/tasks.md, without BracketLanguage.
class Enumeration {
 public:
  Enumeration(const BracketConfig& config, double gap, int start)
      : config_(config), rules_(bracket_rules(config)), gap_(gap), start_(start) {}

  std::vector<double> posterior(const std::vector<int16_t>& frames) {
    frames_ = frames;
    sums_.assign(static_cast<size_t>(config_.types) + 1, 0.0);
    stack_.clear();
    next_bracket(0, 0, 1.0);
    double total = 0;
    for (const double sum : sums_) total += sum;
    for (double& sum : sums_) sum /= total;
    return sums_;
  }

 private:
  int symbols() const { return (config_.types + config_.share - 1) / config_.share; }
  int opening(int type) const { return 2 * (type / config_.share); }
  int closing(int type) const { return 2 * (type % symbols()) + 1; }
  bool full() const { return static_cast<int>(stack_.size()) == config_.depth; }
  const std::vector<int>& inside() const { return rules_[stack_.empty() ? 0 : static_cast<size_t>(stack_.back()) + 1]; }

  void next_bracket(int element, size_t at, double weight) {
    if (element == config_.length) return;
    const double open = stack_.empty() ? 1 : full() ? 0 : 0.5;
    if (open > 0) {
      const std::vector<int> types = inside();
      for (const int type : types) {
        if (frames_[at] != opening(type)) continue;
        stack_.push_back(type);
        after_bracket(element, at, weight * open / static_cast<double>(types.size()));
        stack_.pop_back();
      }
    }
    if (open < 1 && frames_[at] == closing(stack_.back())) {
      const int type = stack_.back();
      stack_.pop_back();
      after_bracket(element, at, weight * (1 - open));
      stack_.push_back(type);
    }
  }

  // The bracket of this element is frame `at`. A wrong symbol may follow it.
  void after_bracket(int element, size_t at, double weight) {
    if (at + 1 == frames_.size()) {
      sums_[stack_.empty() ? 0 : static_cast<size_t>(stack_.back()) + 1] += weight;
      return;
    }
    std::vector<int> wrong;
    for (int c = 0; c < 2 * symbols(); ++c)
      if (!can_follow(c)) wrong.push_back(c);
    const double gap = wrong.empty() || element < start_ ? 0 : gap_;
    next_bracket(element + 1, at + 1, weight * (1 - gap));
    if (gap == 0 || std::count(wrong.begin(), wrong.end(), frames_[at + 1]) == 0) return;
    const double shown = weight * gap / static_cast<double>(wrong.size());
    if (at + 2 == frames_.size())
      sums_[stack_.empty() ? 0 : static_cast<size_t>(stack_.back()) + 1] += shown;
    else
      next_bracket(element + 1, at + 2, shown);
  }

  bool can_follow(int c) const {
    if (c % 2 == 1) return !stack_.empty() && closing(stack_.back()) == c;
    return !full() && std::any_of(inside().begin(), inside().end(), [&](int type) { return opening(type) == c; });
  }

  BracketConfig config_;
  std::vector<std::vector<int>> rules_;
  double gap_;
  int start_;
  std::vector<int16_t> frames_;
  std::vector<int> stack_;
  std::vector<double> sums_;
};

const std::vector<BracketConfig> kTiny = {
    {.seed = 1, .types = 4, .share = 2, .children = 2, .depth = 3, .length = 7},
    {.seed = 2, .types = 5, .share = 3, .children = 3, .depth = 2, .length = 7},
    {.seed = 3, .types = 3, .share = 1, .children = 2, .depth = 3, .length = 7},
    {.seed = 4, .types = 6, .share = 2, .children = 1, .depth = 4, .length = 8},
    {.seed = 5, .types = 2, .share = 2, .children = 2, .depth = 2, .length = 6},
};

TEST(Dyck, ItsOracleEqualsEnumeration) {
  bool uncertain = false;
  for (const BracketConfig& config : kTiny) {
    const auto task = dyck_task(config);
    const std::unique_ptr<Oracle> oracle = task->oracle(Split::test);
    Enumeration enumeration(config, 0, 0);
    Batch batch;
    std::vector<double> found(static_cast<size_t>(config.types) + 1);
    for (uint64_t sample = 0; sample < 30; ++sample) {
      task->fill(Split::test, sample, 1, batch);
      oracle->reset();
      for (int t = 0; t < batch.frames; ++t) {
        oracle->frame(batch.symbol[static_cast<size_t>(t)]);
        oracle->posterior(found.data());
        const auto expected = enumeration.posterior({batch.symbol.begin(), batch.symbol.begin() + t + 1});
        for (size_t answer = 0; answer < found.size(); ++answer) EXPECT_NEAR(found[answer], expected[answer], 1e-12);
        EXPECT_GT(expected[static_cast<size_t>(batch.state[static_cast<size_t>(t)])], 0) << "the true answer";
        uncertain |= *std::max_element(expected.begin(), expected.end()) < 0.9;
      }
    }
  }
  EXPECT_TRUE(uncertain);
}

TEST(Dyck, TheFilterOverStacksEqualsEnumerationWithWrongSymbols) {
  TaskConfig gaps = paper_task(3);
  gaps.train.probability = gaps.test.probability = 0.3;
  gaps.train.start = gaps.test.start = 1;
  int wrong = 0;
  for (const BracketConfig& config : kTiny) {
    const auto language = std::make_shared<const BracketLanguage>(config);
    const GapTask task(language, gaps);
    const std::unique_ptr<Oracle> filter = task.oracle(Split::test);
    Enumeration enumeration(config, 0.3, 1);
    Batch batch;
    std::vector<StateProbability> states;
    for (uint64_t sample = 0; sample < 30; ++sample) {
      task.fill(Split::test, sample, 1, batch);
      filter->reset();
      for (int t = 0; t < batch.frames; ++t) {
        wrong += batch.gap[static_cast<size_t>(t)];
        filter->frame(batch.symbol[static_cast<size_t>(t)]);
        filter->posterior(states);
        std::vector<double> found(static_cast<size_t>(config.types) + 1);
        for (const StateProbability& s : states) found[static_cast<size_t>(language->top(s.id) + 1)] += s.probability;
        const auto expected = enumeration.posterior({batch.symbol.begin(), batch.symbol.begin() + t + 1});
        for (size_t answer = 0; answer < found.size(); ++answer) EXPECT_NEAR(found[answer], expected[answer], 1e-12);
      }
    }
  }
  EXPECT_GT(wrong, 100);
}

// Follows the brackets of a sample; `share` is 1, so symbols are types.
void expect_brackets(const Batch& batch, int row, int depth, int& deepest) {
  std::vector<int> stack;
  for (int e = 0; e < batch.elements; ++e) {
    const auto frame = static_cast<size_t>(row * batch.frames + batch.starts(row)[e]);
    const int symbol = batch.symbol[frame];
    if (symbol % 2 == 0) {
      stack.push_back(symbol / 2);
    } else {
      ASSERT_FALSE(stack.empty());
      ASSERT_EQ(stack.back(), symbol / 2);
      stack.pop_back();
    }
    deepest = std::max(deepest, static_cast<int>(stack.size()));
    EXPECT_LE(static_cast<int>(stack.size()), depth);
    EXPECT_EQ(batch.target[frame], stack.empty() ? 0 : stack.back() + 1);
  }
}

TEST(Dyck, ItsSamplesAreBracketsOfBoundedDepth) {
  const BracketConfig config{.seed = 9, .types = 3, .share = 1, .children = 2, .depth = 5, .length = 60};
  for (const int64_t as_task : {0, 1, 2, 3}) {
    const auto task = dyck_task(config, as_task);
    Batch batch;
    task->fill(Split::valid, 0, 20, batch);
    int deepest = 0;
    for (int b = 0; b < 20; ++b) expect_brackets(batch, b, 5, deepest);
    EXPECT_EQ(deepest, 5);
    EXPECT_EQ(batch.noise, as_task == 2 ? 0.2 : 0.0);
    EXPECT_EQ(task->shape().fixed_frames, as_task < 2);
    CeilingRequest request;
    request.samples = 50;
    EXPECT_NEAR(exact_ceiling(*task, request).accuracy, 1, as_task == 3 ? 0.02 : 1e-9) << "every symbol shows its type";
  }
}

TEST(Dyck, AmbiguousTypesAreInferredFromTheRules) {
  const BracketConfig config{.seed = 1, .types = 4, .share = 2, .children = 2, .depth = 4, .length = 100};
  CeilingRequest request;
  request.samples = 200;
  for (const int64_t as_task : {0, 2, 3}) {
    const Ceiling ceiling = exact_ceiling(*dyck_task(config, as_task), request);
    const double error = std::hypot(ceiling.stderr_, ceiling.filter_stderr);
    EXPECT_NEAR(ceiling.filter_accuracy, ceiling.accuracy, 4 * error) << as_task;
    EXPECT_LT(ceiling.accuracy, 0.99) << as_task;
    EXPECT_GT(ceiling.accuracy, 0.7) << as_task << ": about 0.57 without rules";
  }
}

TEST(Dyck, TheTestAxisChangesDepthAndLength) {
  const BracketConfig config{.seed = 1, .types = 4, .share = 2, .children = 2, .depth = 3, .length = 20};
  const auto task = dyck_task(config, 0, 90);
  EXPECT_EQ(task->shape().elements, 20);
  const auto deeper = task->at(Split::test, 7);
  EXPECT_EQ(deeper->shape().elements, 90);
  EXPECT_EQ(deeper->shape().answers, task->shape().answers);
  Batch batch, direct;
  deeper->fill(Split::test, 0, 10, batch);
  BracketConfig same = config;
  same.depth = 7;
  same.length = 90;
  dyck_task(same)->fill(Split::test, 0, 10, direct);
  EXPECT_EQ(batch.symbol, direct.symbol) << "the same rules";
  EXPECT_EQ(batch.target, direct.target);
}

TEST(Dyck, RefusesWhatItCannotMake) {
  const auto refusal = [](const BracketConfig& config) { return error_line([&] { dyck_task(config); }); };
  EXPECT_EQ(refusal({.types = 3, .share = 4}), "[task.share] expected at most types (3), got 4");
  EXPECT_EQ(refusal({.types = 3, .children = 4}), "[task.children] expected at most types (3), got 4");
  EXPECT_EQ(
      refusal({.types = 4, .children = 4, .depth = 12}),
      "[task.depth] depth 12 with 4 types and 4 children needs more than 65536 states, expected a smaller depth, or "
      "fewer types or children");
  EXPECT_EQ(refusal({.types = 4, .children = 2, .depth = 12}), "");
}

}  // namespace
}  // namespace sb
