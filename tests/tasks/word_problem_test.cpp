// Word problems against enumeration of the start and of all that frames can show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../base/expect.h"
#include "base/error.h"
#include "grammar/machine.h"
#include "kind_example.h"
#include "tasks/ceiling.h"

namespace sb {
namespace {

using test::example;

const TaskValue kHidden = std::string("hidden");

std::shared_ptr<const Task> word_problem(const std::string& machine, int length,
                                         std::map<std::string, TaskValue> keys = {}) {
  keys["machine"] = machine;
  return example("word_problem", length, keys);
}

// Posterior of the answer after these frames: sums of the joint probabilities of frames, start and unseen symbols.
class Enumeration {
 public:
  Enumeration(const Machine& machine, double reveal, double unseen, bool hidden)
      : machine_(machine), reveal_(reveal), unseen_(unseen), hidden_(hidden) {}

  std::vector<double> posterior(const std::vector<int16_t>& frames) {
    sums_.assign(static_cast<size_t>(machine_.answers), 0.0);
    for (int32_t start = 0; start < (hidden_ ? machine_.states : 1); ++start) follow(frames, 0, start, 1);
    double total = 0;
    for (const double sum : sums_) total += sum;
    for (double& sum : sums_) sum /= total;
    return sums_;
  }

 private:
  void follow(const std::vector<int16_t>& frames, size_t at, int32_t state, double weight) {
    if (at == frames.size()) {
      sums_[static_cast<size_t>(machine_.answer[static_cast<size_t>(state)])] += weight;
    } else if (frames[at] >= machine_.symbols) {
      if (frames[at] - machine_.symbols == state) follow(frames, at + 1, state, weight * reveal_);
    } else {
      for (int32_t symbol = 0; symbol < machine_.symbols; ++symbol) {
        const double drawn = weight * (1 - reveal_) / machine_.symbols;
        if (frames[at] == kBlankFrame)
          follow(frames, at + 1, machine_.step(state, symbol), drawn * unseen_);
        else if (frames[at] == symbol)
          follow(frames, at + 1, machine_.step(state, symbol), drawn * (1 - unseen_));
      }
    }
  }

  const Machine& machine_;
  double reveal_, unseen_;
  bool hidden_;
  std::vector<double> sums_;
};

struct Case {
  double reveal, unseen;
  bool hidden;
};

TEST(WordProblem, ItsOracleEqualsEnumeration) {
  int uncertain = 0, certain = 0;
  for (const std::string& name : machine_names()) {
    const Machine machine = make_machine(name);
    for (const auto& [reveal, unseen, hidden] :
         {Case{0, 0, false}, {0, 0, true}, {0.2, 0, true}, {0, 0.3, false}, {0.2, 0.3, true}}) {
      const auto task = word_problem(
          name, 9, {{"reveal", reveal}, {"unseen", unseen}, {"start", std::string(hidden ? "hidden" : "known")}});
      const std::unique_ptr<Oracle> oracle = task->oracle(Split::test);
      Enumeration enumeration(machine, reveal, unseen, hidden);
      Batch batch;
      std::vector<double> found(static_cast<size_t>(machine.answers));
      for (uint64_t sample = 0; sample < 10; ++sample) {
        task->fill(Split::test, sample, 1, batch);
        oracle->reset();
        double paths = hidden ? machine.states : 1;
        for (size_t t = 0; t < 9; ++t) {
          if (batch.symbol[t] == kBlankFrame) paths *= machine.symbols;
          if (paths > 10000) break;
          oracle->frame(batch.symbol[t]);
          oracle->posterior(found.data());
          const auto expected =
              enumeration.posterior({batch.symbol.begin(), batch.symbol.begin() + static_cast<std::ptrdiff_t>(t) + 1});
          for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << name;
          const int32_t answer = batch.state[t];
          if (answer < 0) continue;
          EXPECT_GT(expected[static_cast<size_t>(answer)], 0) << "the true answer";
          ++(*std::max_element(expected.begin(), expected.end()) < 0.9 ? uncertain : certain);
        }
      }
    }
  }
  EXPECT_GT(uncertain, 500);
  EXPECT_GT(certain, 500);
}

TEST(WordProblem, SamplesFollowTheMachine) {
  const Machine machine = make_machine("a4_z5");
  const auto task = word_problem("a4_z5", 50, {{"reveal", 0.1}}), part = word_problem("a4_z5", 50, {{"unseen", 0.5}});
  EXPECT_EQ(task->shape().channels, 120);
  EXPECT_EQ(task->shape().answers, 60);
  EXPECT_EQ(word_problem("a4_z5", 50)->shape().channels, 60) << "no channels for reveals that never happen";
  Batch batch;
  task->fill(Split::train, 0, 100, batch);
  int reveals = 0;
  std::vector<int> seen(60);
  for (size_t b = 0; b < 100; ++b) {
    int32_t state = 0;
    for (size_t t = 0; t < 50; ++t) {
      const int16_t shown = batch.symbol[50 * b + t];
      if (shown >= 60) {
        ++reveals;
        EXPECT_EQ(shown - 60, state);
        EXPECT_EQ(batch.target[50 * b + t], -1) << "the frame shows the answer";
        continue;
      }
      ++seen[static_cast<size_t>(shown)];
      state = machine.step(state, shown);
      EXPECT_EQ(batch.target[50 * b + t], state);
      EXPECT_EQ(batch.state[50 * b + t], state);
    }
  }
  EXPECT_NEAR(reveals, 500, 4 * std::sqrt(450));
  Batch hidden, whole;
  part->fill(Split::train, 0, 100, hidden);
  word_problem("a4_z5", 50)->fill(Split::train, 0, 100, whole);
  EXPECT_EQ(hidden.target, whole.target) << "unseen symbols move the state, and are asked for";
  EXPECT_NEAR(static_cast<double>(std::count(hidden.symbol.begin(), hidden.symbol.end(), kBlankFrame)), 2500, 140);
  for (size_t i = 0; i < hidden.symbol.size(); ++i) {
    EXPECT_EQ(hidden.gap[i] == 1, hidden.symbol[i] == kBlankFrame);
    EXPECT_TRUE(hidden.gap[i] == 1 || hidden.symbol[i] == whole.symbol[i]);
  }
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 75 - 4 * std::sqrt(75));
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), 75 + 4 * std::sqrt(75));
}

TEST(WordProblem, AHiddenStartIsKnownAfterAReveal) {
  const auto task = word_problem("a5", 20, {{"reveal", 0.1}, {"start", kHidden}});
  CeilingRequest request;
  request.samples = 2000;
  const Ceiling ceiling = exact_ceiling(*task, request);
  double expected = 0;
  for (int t = 0; t < 20; ++t) expected += (1 - std::pow(0.9, t) * (1 - 1.0 / 60)) / 20;
  EXPECT_NEAR(ceiling.accuracy, expected, 4 * ceiling.stderr_);
  EXPECT_NEAR(ceiling.filter_accuracy, expected, 4 * ceiling.filter_stderr);
  EXPECT_NEAR(ceiling.by_position[0], 1.0 / 60, 1e-12);

  request.samples = 20;
  EXPECT_DOUBLE_EQ(exact_ceiling(*word_problem("a5", 20), request).accuracy, 1);
  const std::unique_ptr<Oracle> oracle = word_problem("parity", 5, {{"reveal", 0.5}})->oracle(Split::test);
  oracle->frame(1);
  EXPECT_THROW(oracle->frame(2), Error) << "reveals state 0, but the state is 1";
}

TEST(WordProblem, TheTestAxisIsTheLength) {
  const auto task = word_problem("cycle", 10, {{"asked_from", int64_t{6}}});
  Batch trained, longer, shorter;
  task->fill(Split::test, 0, 8, trained);
  EXPECT_EQ(std::count(trained.target.begin(), trained.target.end(), -1), 0) << "the key is for the axis only";
  task->at(Split::test, 25)->fill(Split::test, 0, 8, longer);
  task->at(Split::test, 4)->fill(Split::test, 0, 8, shorter);
  for (size_t b = 0; b < 8; ++b) {
    for (size_t t = 0; t < 10; ++t) EXPECT_EQ(longer.symbol[25 * b + t], trained.symbol[10 * b + t]);
    for (size_t t = 0; t < 25; ++t) EXPECT_EQ(longer.target[25 * b + t] >= 0, t >= 5);
    for (size_t t = 5; t < 10; ++t) EXPECT_EQ(longer.target[25 * b + t], trained.target[10 * b + t]);
    for (size_t t = 0; t < 4; ++t) EXPECT_EQ(shorter.target[4 * b + t], t < 3 ? -1 : trained.target[10 * b + t]);
  }
}

TEST(WordProblem, AnUnaskedCeilingIsRejectedInOneLine) {
  const auto task = word_problem("parity", 1, {{"reveal", 0.9}});
  CeilingRequest request;
  while (true) {  // to a sample that only reveals the state
    Batch batch;
    task->fill(Split::test, request.first, 1, batch);
    if (batch.state[0] < 0) break;
    ++request.first;
  }
  request.samples = 1;
  const Ceiling ceiling = exact_ceiling(*task, request);
  EXPECT_EQ(ceiling.asked, 0);
  EXPECT_EQ(ceiling.mean_entropy, 0) << "not NaN";
  EXPECT_EQ(error_line([&] { expect_asked(ceiling); }), "[ceiling] no ceiling: no element has an answer (samples: 1)");
}

}  // namespace
}  // namespace sb
