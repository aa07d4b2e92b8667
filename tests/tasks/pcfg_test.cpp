// The context-free grammar and its task, against enumeration of every derivation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "../base/expect.h"
#include "base/error.h"
#include "grammar/pcfg.h"
#include "tasks/ceiling.h"
#include "tasks/gap_process.h"
#include "tasks/stack_filter.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

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

// Sums the probabilities of all derivations and wrong symbols that show these frames. Keeps whole stacks.
class PcfgEnumeration {
 public:
  PcfgEnumeration(const Pcfg& grammar, double gap, int start)
      : grammar_(grammar), forbidden_(grammar.forbidden_classes()), gap_(gap), start_(start) {}

  std::vector<double> named;  // [pre-terminals]: sums by the pre-terminal of the last frame, if it is not wrong
  double wrong = 0;           // sum if it is

  void sum(const std::vector<int16_t>& frames) {
    frames_ = frames;
    named.assign(grammar_.symbols().size(), 0.0);
    wrong = 0;
    derive({Pcfg::kStart}, 0, 0, 1.0);
  }

 private:
  // `stack`: the top is last; if it is empty, the sentence ends.
  void derive(std::vector<int32_t> stack, int element, size_t at, double weight) {
    const int32_t top = stack.empty() ? Pcfg::kEnd : stack.back();
    if (!stack.empty()) stack.pop_back();
    for (const Pcfg::Rule& rule : grammar_.rules(top)) {
      if (grammar_.symbol(rule.preterminal) != frames_[at]) continue;
      std::vector<int32_t> after = stack;
      if (rule.second != Pcfg::kNoChild) after.push_back(rule.second);
      if (rule.first != Pcfg::kNoChild) after.push_back(rule.first);
      if (at + 1 == frames_.size())
        named[static_cast<size_t>(rule.preterminal)] += weight * rule.probability;
      else
        follow(after, element, at + 1, weight * rule.probability);
    }
  }

  // Frame `at` shows the next element or a wrong symbol.
  void follow(const std::vector<int32_t>& stack, int element, size_t at, double weight) {
    const std::vector<int32_t>& classes = forbidden_[static_cast<size_t>(stack.empty() ? Pcfg::kEnd : stack.back())];
    const double gap = classes.empty() || element < start_ ? 0 : gap_;
    derive(stack, element + 1, at, weight * (1 - gap));
    if (gap == 0 || std::count(classes.begin(), classes.end(), frames_[at]) == 0) return;
    const double shown = weight * gap / static_cast<double>(classes.size());
    if (at + 1 == frames_.size())
      wrong += shown;
    else
      derive(stack, element + 1, at + 1, shown);
  }

  const Pcfg& grammar_;
  std::vector<std::vector<int32_t>> forbidden_;
  double gap_;
  int start_;
  std::vector<int16_t> frames_;
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
    {.seed = 5, .nonterminals = 4, .preterminals = 6, .share = 3, .rules = 2, .branching = 0},
};

// Symbols of a sample, with wrong ones.
std::vector<int16_t> drawn_frames(const Pcfg& grammar, const GapProcess& process, uint64_t sample, int length,
                                  std::vector<int32_t>& answers) {
  std::vector<uint16_t> preterminals(static_cast<size_t>(length)), tops(preterminals.size());
  Gaps gaps;
  grammar.draw(Split::test, sample, length, preterminals.data(), tops.data());
  process.draw(Split::test, sample, tops.data(), length, gaps);
  std::vector<int16_t> frames;
  answers.clear();
  size_t wrong = 0;
  for (size_t e = 0; e < preterminals.size(); ++e) {
    frames.push_back(static_cast<int16_t>(grammar.symbol(preterminals[e])));
    answers.push_back(preterminals[e]);
    for (int i = 0; i < gaps.length[e]; ++i) {
      frames.push_back(static_cast<int16_t>(gaps.wrong.at(wrong++)));
      answers.push_back(-1);
    }
  }
  return frames;
}

struct Seen {
  int uncertain = 0, wrong = 0, certainly_wrong = 0;
};

// Follows samples with the oracle and with the enumeration.
void expect_enumeration(const PcfgConfig& config, const TaskConfig& gaps, int length, Seen& seen) {
  const auto grammar = std::make_shared<const Pcfg>(config);
  StackFilter oracle(grammar, gaps, Split::test);
  const GapProcess process(config.seed, grammar->forbidden_classes(), gaps);
  PcfgEnumeration expected(*grammar, gaps.test.law == GapLaw::none ? 0 : gaps.test.probability, gaps.test.start);
  std::vector<double> found(grammar->symbols().size());
  std::vector<int32_t> answers;
  for (uint64_t sample = 0; sample < 30; ++sample) {
    const std::vector<int16_t> frames = drawn_frames(*grammar, process, sample, length, answers);
    oracle.reset();
    for (size_t t = 0; t < frames.size(); ++t) {
      oracle.frame(frames[t]);
      oracle.posterior(found.data());
      expected.sum({frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(t) + 1});
      const double all = total(expected.named);
      for (size_t answer = 0; answer < found.size(); ++answer)
        ASSERT_NEAR(found[answer], all > 0 ? expected.named[answer] / all : 0, 1e-12) << "frame " << t;
      ASSERT_NEAR(oracle.log_likelihood().value(), std::log(all + expected.wrong), 1e-11);
      seen.wrong += answers[t] < 0;
      seen.certainly_wrong += all == 0;
      if (answers[t] < 0) continue;
      ASSERT_GT(found[static_cast<size_t>(answers[t])], 0) << "the true answer";
      seen.uncertain += *std::max_element(found.begin(), found.end()) < 0.9;
    }
  }
}

TEST(Pcfg, ItsOracleEqualsEnumeration) {
  Seen seen;
  for (const PcfgConfig& config : kTiny) expect_enumeration(config, {}, 9, seen);
  EXPECT_GT(seen.uncertain, 100);
}

TEST(Pcfg, ItsOracleEqualsEnumerationWithWrongSymbols) {
  TaskConfig gaps = paper_task(3);
  gaps.test.probability = 0.3;
  gaps.test.start = 1;
  Seen seen;
  for (const PcfgConfig& config : kTiny) expect_enumeration(config, gaps, 7, seen);
  EXPECT_GT(seen.uncertain, 100);
  EXPECT_GT(seen.wrong, 50);
  EXPECT_GT(seen.certainly_wrong, 10);
}

// The distribution over whole stacks, without those whose probability is below 1e-20. The top is last.
class WholeStacks {
 public:
  explicit WholeStacks(const Pcfg& grammar) : grammar_(grammar) {}
  // Posterior over pre-terminals after this symbol.
  std::vector<double> frame(int32_t symbol) {
    std::map<std::vector<int32_t>, double> next;
    std::vector<double> named(grammar_.symbols().size());
    double all = 0;
    for (const auto& [stack, weight] : stacks_) {
      for (const Pcfg::Rule& rule : grammar_.rules(stack.empty() ? Pcfg::kEnd : stack.back())) {
        if (grammar_.symbol(rule.preterminal) != symbol) continue;
        std::vector<int32_t> after = stack;
        if (!after.empty()) after.pop_back();
        if (rule.second != Pcfg::kNoChild) after.push_back(rule.second);
        if (rule.first != Pcfg::kNoChild) after.push_back(rule.first);
        next[after] += weight * rule.probability;
        named[static_cast<size_t>(rule.preterminal)] += weight * rule.probability;
        all += weight * rule.probability;
      }
    }
    stacks_.clear();
    for (const auto& [stack, weight] : next)
      if (weight / all > 1e-20) stacks_[stack] = weight / all;
    for (double& weight : named) weight /= all;
    return named;
  }

 private:
  const Pcfg& grammar_;
  std::map<std::vector<int32_t>, double> stacks_ = {{{Pcfg::kStart}, 1.0}};
};

TEST(Pcfg, ItsOracleFollowsLongSentences) {
  const auto grammar = std::make_shared<const Pcfg>(
      PcfgConfig{.seed = 1, .nonterminals = 12, .preterminals = 60, .share = 4, .rules = 2, .branching = 0.99});
  StackFilter oracle(grammar, {}, Split::test);
  constexpr int length = 1000;
  std::vector<uint16_t> preterminals(length), tops(length);
  std::vector<double> found(grammar->symbols().size());
  int longest = 0;
  for (uint64_t sample = 0; sample < 3; ++sample) {
    grammar->draw(Split::test, sample, length, preterminals.data(), tops.data());
    WholeStacks stacks(*grammar);
    oracle.reset();
    int sentence = 0;
    for (const uint16_t preterminal : preterminals) {
      const int32_t symbol = grammar->symbol(preterminal);
      oracle.frame(static_cast<int16_t>(symbol));
      oracle.posterior(found.data());
      const std::vector<double> expected = stacks.frame(symbol);
      for (size_t t = 0; t < found.size(); ++t) ASSERT_NEAR(found[t], expected[t], 1e-9);
      sentence = symbol == 0 ? 0 : sentence + 1;
      longest = std::max(longest, sentence);
    }
  }
  EXPECT_GT(longest, 300) << "unused nodes are removed now and then";
}

TEST(Pcfg, GrammarsAreProbabilistic) {
  const PcfgConfig config{.seed = 8, .nonterminals = 7, .preterminals = 20, .share = 4, .rules = 3, .branching = 0.8};
  const Pcfg grammar(config);
  EXPECT_EQ(grammar.classes(), 6) << "5 symbols and '#'";
  for (int32_t a = 1; a <= 7; ++a) {
    double sum = 0, children = 0;
    std::set<int32_t> preterminals;
    for (const Pcfg::Rule& rule : grammar.rules(a)) {
      EXPECT_GT(rule.probability, 0.01);
      sum += rule.probability;
      children += rule.probability * ((rule.first != Pcfg::kNoChild) + (rule.second != Pcfg::kNoChild));
      for (const int32_t child : {rule.first, rule.second})
        EXPECT_TRUE(child == Pcfg::kNoChild || (child >= 1 && child <= 7));
      preterminals.insert(rule.preterminal);
    }
    EXPECT_EQ(sum, 1);
    EXPECT_NEAR(children, 0.8, 1e-8);
    EXPECT_EQ(preterminals.size(), 9) << "different ones";
    EXPECT_TRUE(*preterminals.begin() >= 1 && *preterminals.rbegin() <= 20);
  }
  PcfgConfig other = config;
  other.seed = 9;
  EXPECT_NE(grammar.rules(1)[0].probability, Pcfg(other).rules(1)[0].probability);
}

TEST(Pcfg, SentencesHaveTheStatedMeanLength) {
  const auto task = pcfg_task({.seed = 2, .branching = 0.8}, 1000);
  Batch batch;
  task->fill(Split::train, 0, 200, batch);
  const auto ends = std::count(batch.symbol.begin(), batch.symbol.end(), 0);
  EXPECT_NEAR(200.0 * 1000 / static_cast<double>(ends), 1 / (1 - 0.8) + 1, 0.1) << "with '#'";
  for (size_t t = 0; t < batch.symbol.size(); ++t) EXPECT_EQ(batch.symbol[t] == 0, batch.target[t] == 0);
}

// Mean entropy of a rule over the stationary distribution of the nonterminals, by expected counts per sentence:
// count(B) = [B = start] + sum over A of count(A) * expected children B of A.
double rule_entropy(const Pcfg& grammar) {
  const auto n = static_cast<size_t>(grammar.config().nonterminals) + 1;
  std::vector<double> count(n, 0.0);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> next(n, 0.0);
    next[Pcfg::kStart] = 1;
    for (size_t a = 1; a < n; ++a)
      for (const Pcfg::Rule& rule : grammar.rules(static_cast<int32_t>(a)))
        for (const int32_t child : {rule.first, rule.second})
          if (child != Pcfg::kNoChild) next[static_cast<size_t>(child)] += count[a] * rule.probability;
    count = next;
  }
  double entropy = 0, elements = 1;  // with '#', which is certain
  for (size_t a = 1; a < n; ++a) {
    elements += count[a];
    for (const Pcfg::Rule& rule : grammar.rules(static_cast<int32_t>(a)))
      entropy -= count[a] * rule.probability * std::log(rule.probability);
  }
  return entropy / elements;
}

TEST(Pcfg, TheEntropyRateIsThatOfTheRulesIfSymbolsShowThem) {
  PcfgConfig config{.seed = 6, .nonterminals = 5, .preterminals = 12, .share = 1, .rules = 2, .branching = 0.8};
  CeilingRequest request;
  request.samples = 100;
  const Ceiling clear = exact_ceiling(*pcfg_task(config, 400), request);
  EXPECT_NEAR(clear.accuracy, 1, 1e-9) << "pre-terminals determine rules";
  const double rate = rule_entropy(Pcfg(config));
  EXPECT_NEAR(clear.entropy_rate.value(), rate, 4 * clear.entropy_rate_stderr + 0.01) << "sentences are cut";
  config.share = 3;
  const Ceiling ambiguous = exact_ceiling(*pcfg_task(config, 400), request);
  EXPECT_LT(ambiguous.entropy_rate.value(), rate - 0.1) << "symbols show less";
  EXPECT_LT(ambiguous.accuracy, 0.9);
}

TEST(Pcfg, GapsAreThoseOfTheTask) {
  const PcfgConfig config{.seed = 4};
  CeilingRequest request;
  request.samples = 100;
  const double plain = exact_ceiling(*pcfg_task(config, 100), request).accuracy;
  for (const int64_t as_task : {1, 2, 3}) {
    const auto task = pcfg_task(config, 100, as_task);
    Batch batch;
    task->fill(Split::test, 0, 20, batch);
    EXPECT_EQ(batch.frames, as_task == 1 ? 200 : as_task == 2 ? 1100 : 100);
    EXPECT_EQ(batch.noise, as_task == 2 ? 0.2 : 0.0);
    EXPECT_EQ(task->shape().fixed_frames, as_task != 2);
    const Ceiling ceiling = exact_ceiling(*task, request);
    const double error = std::hypot(ceiling.stderr_, ceiling.filter_stderr);
    EXPECT_NEAR(ceiling.filter_accuracy, ceiling.accuracy, 4 * error) << as_task;
    EXPECT_DOUBLE_EQ(ceiling.upper_bound, ceiling.accuracy) << "wrong symbols have no answer";
    if (as_task < 3) {
      EXPECT_NEAR(ceiling.accuracy, plain, 1e-9) << "blank frames tell nothing";
      continue;
    }
    EXPECT_LT(ceiling.accuracy, plain);
    int wrong = 0;
    for (size_t t = 0; t < batch.symbol.size(); ++t) {
      EXPECT_EQ(batch.gap[t] == 1, batch.target[t] < 0);
      EXPECT_TRUE(batch.gap[t] == 0 || (batch.symbol[t] > 0 && t % 100 > 50)) << t;
      wrong += batch.gap[t];
    }
    EXPECT_NEAR(wrong, 20 * 49 * 0.1 / 1.1, 35);
  }
}

TEST(Pcfg, TheTestAxisIsTheLength) {
  const auto task = pcfg_task({.seed = 4}, 30);
  Batch batch, longer;
  task->fill(Split::test, 0, 5, batch);
  task->at(Split::test, 70)->fill(Split::test, 0, 5, longer);
  EXPECT_EQ(longer.elements, 70);
  for (size_t b = 0; b < 5; ++b)
    EXPECT_TRUE(std::equal(batch.symbol.begin() + static_cast<std::ptrdiff_t>(30 * b),
                           batch.symbol.begin() + static_cast<std::ptrdiff_t>(30 * b + 30),
                           longer.symbol.begin() + static_cast<std::ptrdiff_t>(70 * b)))
        << "the same beginnings";
}

TEST(Pcfg, TheOracleRejectsImpossibleFrames) {
  const auto oracle = pcfg_task({.seed = 4}, 30)->oracle(Split::test);
  EXPECT_THROW(oracle->frame(kBlankFrame), Error);
  oracle->reset();
  EXPECT_THROW(oracle->frame(0), Error) << "no sentence is empty";
  oracle->reset();
  EXPECT_THROW(oracle->frame(1000), Error);
}

TEST(Pcfg, RefusesWhatItCannotMake) {
  const auto refusal = [](const PcfgConfig& config) { return error_line([&] { pcfg_task(config, 10); }); };
  EXPECT_EQ(refusal({.preterminals = 6, .share = 7}), "[task.share] expected at most preterminals (6), got 7");
  EXPECT_EQ(refusal({.preterminals = 7, .rules = 3}),
            "[task.rules] expected at most a third of preterminals (7), got 3");
  EXPECT_EQ(refusal({.preterminals = 6, .share = 6, .rules = 2}), "");
}

}  // namespace
}  // namespace sb
