// The exact filter of a context-free grammar in Greibach form (grammar/pcfg.h) with gaps, by prefix probabilities.
#pragma once
#include <memory>
#include <optional>

#include "grammar/pcfg.h"
#include "tasks/oracle.h"
#include "tasks/task_config.h"

namespace sb {

// Follows one sample frame by frame. The number of possible stacks grows exponentially, so they share their lower
// parts: a stack is its top nonterminal and a node for what is below. A node is created by rules A -> T B C at one
// frame, for all A at once. It holds C, and the distribution of the nodes below A, given B and C. The distribution
// stays valid until C comes to the top, because what happens above does not depend on what is below. A sentence of n
// frames has O(n) nodes with O(n) entries each, so a frame costs O(n^2). After a '#' all stacks are equal. Beliefs are
// about the pre-terminal of the last frame with a symbol, given that the symbol is not wrong: a wrong one has no
// answer. Nothing is believed if it can only be wrong.
class StackFilter final : public Oracle {
 public:
  StackFilter(std::shared_ptr<const Pcfg> grammar, const TaskConfig& task, Split split);
  ~StackFilter() override;

  int states() const override;  // pre-terminals, with that of '#'
  int classes() const override;
  bool exact() const override;
  void reset() override;
  void frame(int16_t symbol) override;
  using Oracle::posterior;
  void posterior(std::vector<StateProbability>& out, int gap_frames = causal) const override;
  std::optional<double> log_likelihood() const override;

  size_t live() const;  // hypotheses

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sb
