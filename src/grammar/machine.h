// Deterministic finite machines with symbols on edges: a symbol takes a state to the next one. Every symbol may follow
// every state.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sb {

struct Machine {
  int states = 0, symbols = 0, answers = 0;
  std::vector<int32_t> next = {};    // [states][symbols]
  std::vector<int32_t> answer = {};  // [states]: what a model names in this state; 0 .. answers-1, each at least once

  int32_t step(int32_t state, int32_t symbol) const {
    return next[static_cast<size_t>(state) * static_cast<size_t>(symbols) + static_cast<size_t>(symbol)];
  }
};

// Samples start in state 0 unless the start is hidden. Groups have one state and one symbol per element: state g goes
// to g * h on symbol h, and state 0 is the identity.
//   parity              states 0, 1; symbol x adds x modulo 2
//   cycle               5 positions; symbols: stay, one step forward, one step back
//   modular_arithmetic  an expression modulo 5 that begins with 0. Symbol 5 o + d appends operator o of (+, -, *) and
//                       digit d. State 5 s + p: s is the sum of all terms but the last, p the last term with its sign,
//                       so * comes before + and -. The answer is s + p.
//   z60                 integers modulo 60 under addition
//   a4_z5               even permutations of 4 points, times the integers modulo 5: element 5 a + z
//   a5, s5              even permutations, all permutations of 5 points
// Permutations are numbered in lexicographic order. In g * h, g is applied first.
Machine make_machine(const std::string& name);  // throws bad_input if there is no such machine
const std::vector<std::string>& machine_names();

}  // namespace sb
