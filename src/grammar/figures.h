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
  // The chain of strings one after the other ('#' goes to a start state). Its distance to the stationary law shrinks by
  // about `mixing_rate` a step (modulus of the second eigenvalue; 1 where it is periodic), that is by e in `relaxation`
  // steps.
  double mixing_rate = 0;
  double relaxation = 0;
  double mean_string_length = 0;  // '#' counted, strings of any length
  double fit_probability = 0;     // P(a string has at most `fit_length` elements, '#' counted)
  int fit_length = 0;
};

// `poll` is called now and then and ends the work by throwing: of the largest grammars they take a minute.
Figures figures(const Automaton& automaton, int fit_length, const std::function<void()>& poll = {});

// Log of the largest eigenvalue of the 0/1 transition table with edges from '#' to the start states added.
double topological_entropy(const Automaton& automaton, const std::function<void()>& poll = {});

}  // namespace sb
