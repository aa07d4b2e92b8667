// Validation of an automaton, before anything is drawn from it.
#pragma once
#include "grammar/automaton.h"

namespace sb {

// Checks that indices are in range, that probabilities are positive and sum to 1 in each row, that every state has a
// path to '#', that no start state is '#', and that ids are a permutation with 0 for '#'. Throws bad_input that names
// the state or field.
void check(const Automaton& automaton);

// For each state whether it has a path to '#'.
std::vector<bool> reaches_end(const Automaton& automaton);

}  // namespace sb
