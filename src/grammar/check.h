// What an automaton must satisfy before anything is drawn from it.
#pragma once
#include "grammar/automaton.h"

namespace sb {

// Throws bad_input naming the state or field: indices in range, probabilities positive with rows summing to 1, every
// state with a path to '#', start states other than '#', ids a permutation with 0 for '#'.
void check(const Automaton& automaton);

// For each state whether it has a path to '#'.
std::vector<bool> reaches_end(const Automaton& automaton);

}  // namespace sb
