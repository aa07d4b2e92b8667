// h_k(s) = P(reach '#' within k steps from state s), used to condition strings on their length.
#pragma once
#include <vector>

#include "grammar/automaton.h"

namespace sb {

class ReachTable {
 public:
  ReachTable(const Automaton& automaton, int steps);  // k = 0..steps
  double at(int k, int s) const { return values_[static_cast<size_t>(k) * states_ + static_cast<size_t>(s)]; }
  const double* row(int k) const { return values_.data() + static_cast<size_t>(k) * states_; }

 private:
  size_t states_;
  std::vector<double> values_;  // [steps + 1][states]
};

// Computes h_k from h_{k-1}; both have length states.
void reach_step(const Automaton& automaton, const double* before, double* after);

// P(a string has at most `length` elements, '#' included). Stops early, with a lower bound, once the bound exceeds
// `enough`.
double fit_probability(const Automaton& automaton, int length, double enough = 2);

}  // namespace sb
