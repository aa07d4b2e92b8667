// Random automata, drawn exactly as the reference draws them: the same parameters and seed give the same automaton.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "grammar/automaton.h"
#include "random/mersenne.h"
#include "random/pcg64.h"

namespace sb {

constexpr int kMaxStates = 65536;  // sequences hold state indices in 16 bits

// Name of letter 0, 1, …: A..Z, a..z, then AA, AB, …, Az, BA, … (spreadsheet columns over those 52 letters).
// A name has no digits, so the index of a state, which follows it ("AB12"), is never part of it.
std::string letter_name(int letter);

// An automaton with what its construction left behind.
struct GrammarDraw {
  std::shared_ptr<const Automaton> automaton;
  int attempts = 0;
  int symbol_seed = 0;   // seed of the symbol order, 0..99
  Pcg64 edges;           // generator of edges and start states, after the last draw
  PythonRandom symbols;  // generator of the symbol order, after the last draw
};

// Throws bad_input where no grammar can come out, or none within the attempts that a few seconds allow. `poll` is
// called now and then and ends the work by throwing: the largest grammars take a minute.
GrammarDraw draw_grammar(const GrammarConfig& config, const std::function<void()>& poll = {});
std::shared_ptr<const Automaton> build_automaton(const GrammarConfig& config, const std::function<void()>& poll = {});

}  // namespace sb
