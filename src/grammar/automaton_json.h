// Automata as JSON: what `selectivbench grammar --json` writes, and what a user's own automaton is read from.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "grammar/automaton.h"
#include "grammar/figures.h"

namespace sb {

constexpr size_t kMaxAutomatonFile = size_t{64} << 20;
constexpr int kMaxFileStates = 65535;
constexpr int kMaxFileVocab = 32767;

// One object. `states` are names in order, `transitions` [source, destination, probability] with indices into `states`,
// `state_ids` the number a model is asked for, `symbols` the class of each state; the rest are figures. `config` is
// what the automaton was built from; without it, ambiguities and depth are counted and the seed is null.
std::string automaton_to_json(const Automaton& automaton, const std::optional<GrammarConfig>& config,
                              const Figures& figures);

// Reads the same object; only `states`, `start_states` and `transitions` must be there. Without `symbols` a state's
// symbol is the run of letters its name begins with ("C2" is symbol C, class 3); without `state_ids` ids go by class,
// then by order. Everything is checked; what does not hold is one line of bad_input that names `file` and the place.
Automaton automaton_from_json(std::string_view text, const std::string& file);
Automaton read_automaton(const std::string& file);

}  // namespace sb
