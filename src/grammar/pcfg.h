// Random probabilistic context-free grammar in Greibach form: every rule begins with one pre-terminal.
//   A -> T        the pre-terminal T emits its symbol, and A is complete;
//   A -> T B      then B derives what follows;
//   A -> T B C    then B, and after it C.
// Several pre-terminals emit the same symbol. docs/tasks.md#pcfg has the distribution.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "grammar/language.h"

namespace sb {

struct PcfgConfig {
  uint64_t seed = 1;
  int nonterminals = 8;
  int preterminals = 24;
  int share = 3;           // pre-terminals per symbol
  int rules = 2;           // of a nonterminal for each number of children
  double branching = 0.9;  // expected number of children

  int symbols() const { return (preterminals + share - 1) / share; }
};

// Nonterminals and pre-terminals are numbered from 1. Nonterminal 0 ends a sentence: its pre-terminal 0 emits class 0,
// '#', and its child is the first nonterminal of the next sentence, kStart. Pre-terminal t > 0 emits class
// 1 + (t - 1) div share. A derivation is a stack of nonterminals, and beneath it any number of nonterminal 0.
class Pcfg {
 public:
  static constexpr int32_t kEnd = 0, kStart = 1;
  static constexpr int32_t kNoChild = -1;
  struct Rule {
    int32_t preterminal = 0;
    int32_t first = kNoChild, second = kNoChild;  // children
    double probability = 0;                       // a multiple of 2^-32
  };

  // Block k of the PhiloxStream (seed, 0, A, signal) decides rule k of nonterminal A, which has k div rules children:
  //   word 0  pre-terminal: step k of a Fisher-Yates shuffle of 1 .. preterminals exchanges entry k with entry
  //           k + (w * (preterminals - k) >> 32). So the rules of a nonterminal have different pre-terminals.
  //   word 1  first child 1 + (w * nonterminals >> 32), word 2: second child
  //   word 3  weight 1/4 + w / 2^32
  // With b = branching, a rule has 0, 1 or 2 children with probability 1 - 2b/3, b/3 and b/3. Rules with the same
  // number of children have probabilities in proportion to their weights. Sums of probabilities in the order of the
  // rules are rounded to multiples of 2^-32.
  explicit Pcfg(const PcfgConfig& config);

  const PcfgConfig& config() const { return config_; }
  int classes() const { return config_.symbols() + 1; }
  std::span<const int32_t> symbols() const { return symbols_; }  // [1 + preterminals]: class of each
  int32_t symbol(int32_t preterminal) const { return symbols_[static_cast<size_t>(preterminal)]; }
  std::span<const Rule> rules(int32_t nonterminal) const { return rules_[static_cast<size_t>(nonterminal)]; }
  // For each nonterminal, the classes that it cannot begin with, ascending, without '#'.
  std::vector<std::vector<int32_t>> forbidden_classes() const;
  std::string canonical_text() const;

  // Pre-terminals of a sample, and the nonterminal on top of the stack after each, [length] both. Word e of the
  // PhiloxStream (seed, split, index, symbol) selects the rule of element e: the first whose sum of probabilities
  // exceeds w / 2^32.
  void draw(Split split, uint64_t index, int length, uint16_t* preterminals, uint16_t* tops) const;

 private:
  std::vector<Rule> drawn_rules(int32_t nonterminal) const;

  PcfgConfig config_;
  std::vector<int32_t> symbols_;
  std::vector<std::vector<Rule>> rules_;      // [1 + nonterminals]
  std::vector<std::vector<uint64_t>> below_;  // the same: 2^32 * sum of probabilities up to each rule
};

}  // namespace sb
