// Numbers that describe an automaton.
#pragma once
#include <functional>

#include "grammar/automaton.h"

namespace sb {

struct Figures {
  int states = 0;
  int transitions = 0;
  double mean_out_degree = 0;      // over the states other than '#'
  int ending_states = 0;           // states with an edge to '#'
  int start_symbols = 0;           // distinct symbols of the start states
  double topological_entropy = 0;  // nats
  // The chain of concatenated strings, where '#' leads to a start state. Per step its distance to the stationary
  // distribution shrinks by about the factor `mixing_rate`, the modulus of the second eigenvalue (1 if the chain is
  // periodic). In `relaxation` steps the distance shrinks by the factor e.
  double mixing_rate = 0;
  double relaxation = 0;
  double mean_string_length = 0;  // '#' included, strings of any length
  double fit_probability = 0;     // P(a string has at most `fit_length` elements, '#' included)
  int fit_length = 0;
};

// `poll` is called now and then and may throw to end the work: the largest grammars take a minute.
Figures figures(const Automaton& automaton, int fit_length, const std::function<void()>& poll = {});

// Log of the largest eigenvalue of the 0/1 transition matrix with additional edges from '#' to the start states.
double topological_entropy(const Automaton& automaton, const std::function<void()>& poll = {});

}  // namespace sb
