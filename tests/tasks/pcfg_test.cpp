// The context-free grammar and its task, against enumeration of every derivation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "grammar/pcfg.h"
#include "kind_example.h"
#include "tasks/ceiling.h"
#include "tasks/gap_task.h"
#include "tasks/stack_filter.h"

namespace sb {
namespace {

using test::example;

std::shared_ptr<const Task> pcfg_task(const PcfgConfig& config, int length, int64_t as_task = 0) {
  TaskSetup setup;
  setup.kind = "pcfg";
  setup.seed = config.seed;
  setup.length = length;
  setup.keys = {{"nonterminals", int64_t{config.nonterminals}},
                {"preterminals", int64_t{config.preterminals}},
                {"share", int64_t{config.share}},
                {"rules", int64_t{config.rules}},
                {"branching", config.branching},
                {"as_task", as_task}};
  return make_task(setup);
}

// Sums the probabilities of all derivations and wrong symbols that show these frames, by the pre-terminal of the last
// element. Keeps whole stacks.
class Enumeration {
 public:
  Enumeration(const Pcfg& grammar, int elements, double gap, int start)
      : grammar_(grammar), forbidden_(grammar.forbidden_classes()), elements_(elements), gap_(gap), start_(start) {}

  // Unnormalised: their sum is the probability of the frames.
  std::vector<double> weights(const std::vector<int16_t>& frames) {
    frames_ = frames;
    sums_.assign(grammar_.symbols().size(), 0.0);
    derive({Pcfg::kStart}, 0, 0, 1.0);
    return sums_;
  }

 private:
  // `stack`: the top is last; if it is empty, the sentence ends.
  void derive(std::vector<int32_t> stack, int element, size_t at, double weight) {
    if (element == elements_) return;
    const int32_t top = stack.empty() ? Pcfg::kEnd : stack.back();
    if (!stack.empty()) stack.pop_back();
    for (const Pcfg::Rule& rule : grammar_.rules(top)) {
      if (grammar_.symbols()[static_cast<size_t>(rule.preterminal)] != frames_[at]) continue;
      std::vector<int32_t> after = stack;
      if (rule.second != Pcfg::kNoChild) after.push_back(rule.second);
      if (rule.first != Pcfg::kNoChild) after.push_back(rule.first);
      follow(after, rule.preterminal, element, at, weight * rule.probability);
    }
  }

  // Frame `at` shows this element. A wrong symbol may follow it.
  void follow(const std::vector<int32_t>& stack, int32_t preterminal, int element, size_t at, double weight) {
    double& sum = sums_[static_cast<size_t>(preterminal)];
    if (at + 1 == frames_.size()) {
      sum += weight;
      return;
    }
    const std::vector<int32_t>& wrong = forbidden_[static_cast<size_t>(stack.empty() ? Pcfg::kEnd : stack.back())];
    const double gap = wrong.empty() || element < start_ ? 0 : gap_;
    derive(stack, element + 1, at + 1, weight * (1 - gap));
    if (gap == 0 || std::count(wrong.begin(), wrong.end(), frames_[at + 1]) == 0) return;
    const double shown = weight * gap / static_cast<double>(wrong.size());
    if (at + 2 == frames_.size())
      sum += shown;
    else
      derive(stack, element + 1, at + 2, shown);
  }

  const Pcfg& grammar_;
  std::vector<std::vector<int32_t>> forbidden_;
  int elements_;
  double gap_;
  int start_;
  std::vector<int16_t> frames_;
  std::vector<double> sums_;
};

double total(const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  return sum;
}

const std::vector<PcfgConfig> kTiny = {
    {.seed = 1, .nonterminals = 3, .preterminals = 6, .share = 3, .rules = 2, .branching = 0.9},
    {.seed = 2, .nonterminals = 5, .preterminals = 9, .share = 9, .rules = 1, .branching = 0.99},
    {.seed = 3, .nonterminals = 2, .preterminals = 7, .share = 2, .rules = 1, .branching = 0.9},
    {.seed = 4, .nonterminals = 1, .preterminals = 3, .share = 2, .rules = 1, .branching = 0.8},
    {.seed = 5, .nonterminals = 4, .preterminals = 6, .share = 2, .rules = 2, .branching = 0},
};

// Follows samples with the oracle and with the enumeration.
void expect_enumeration(const PcfgConfig& config, int length, const TaskConfig& gaps, int samples, int& uncertain) {
  const auto grammar = std::make_shared<const Pcfg>(config);
  const auto task = pcfg_task(config, length);
  StackFilter oracle(grammar, gaps, Split::test, length);
  const bool wrong = gaps.test.law != GapLaw::none;
  Enumeration enumeration(*grammar, length, wrong ? gaps.test.probability : 0, gaps.test.start);
  const GapProcess process(config.seed, grammar->forbidden_classes(), gaps);
  std::vector<uint16_t> preterminals(static_cast<size_t>(length)), tops(preterminals.size());
  std::vector<int32_t> ids(grammar->symbols().size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::vector<double> found(grammar->symbols().size());
  for (int sample = 0; sample < samples; ++sample) {
    Gaps drawn;
    Batch batch;
    grammar->draw(Split::test, static_cast<uint64_t>(sample), length, preterminals.data(), tops.data());
    process.draw(Split::test, static_cast<uint64_t>(sample), tops.data(), length, drawn);
    assemble(grammar->classes(), grammar->symbols(), ids, preterminals.data(), length, &drawn, 1, batch);
    oracle.reset();
    for (int t = 0; t < batch.frames; ++t) {
      oracle.frame(batch.symbol[static_cast<size_t>(t)]);
      oracle.posterior(found.data());
      const auto expected = enumeration.weights({batch.symbol.begin(), batch.symbol.begin() + t + 1});
      const double all = total(expected);
      for (size_t answer = 0; answer < found.size(); ++answer)
        ASSERT_NEAR(found[answer], expected[answer] / all, 1e-12) << "frame " << t;
      ASSERT_GT(found[static_cast<size_t>(batch.target[static_cast<size_t>(t)])], 0) << "the true answer";
      ASSERT_NEAR(oracle.log_likelihood().value(), std::log(all), 1e-11);
      uncertain += *std::max_element(found.begin(), found.end()) < 0.9;
    }
  }
}

TEST(Pcfg, ItsOracleEqualsEnumeration) {
  for (const PcfgConfig& config : kTiny) {
    int uncertain = 0;
    expect_enumeration(config, 9, {}, 20, uncertain);
    EXPECT_GT(uncertain, 0) << config.seed;
  }
}

TEST(Pcfg, ItsOracleEqualsEnumerationWithWrongSymbols) {
  TaskConfig gaps = paper_task(3);
  gaps.test.probability = 0.3;
  gaps.test.start = 1;
  for (const PcfgConfig& config : kTiny) {
    int uncertain = 0;
    expect_enumeration(config, 7, gaps, 20, uncertain);
    EXPECT_GT(uncertain, 0) << config.seed;
  }
}

}  // namespace
}  // namespace sb
