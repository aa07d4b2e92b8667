// Random automata, drawn exactly as in the reference: the same parameters and seed give the same automaton.
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
// Names contain no digits, so the index of a state can follow the name ("AB12").
std::string letter_name(int letter);

// An automaton with the details of its construction.
struct GrammarDraw {
  std::shared_ptr<const Automaton> automaton;
  int attempts = 0;
  int symbol_seed = 0;   // seed of the symbol order, 0..99
  Pcg64 edges;           // generator of edges and start states, after the last draw
  PythonRandom symbols;  // generator of the symbol order, after the last draw
};

// Throws bad_input if no grammar is possible, or if none is found within the attempts that take a few seconds. `poll`
// is called now and then and may throw to end the work: the largest grammars take a minute.
GrammarDraw draw_grammar(const GrammarConfig& config, const std::function<void()>& poll = {});
std::shared_ptr<const Automaton> build_automaton(const GrammarConfig& config, const std::function<void()>& poll = {});

}  // namespace sb
