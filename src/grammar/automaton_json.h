// Automata as JSON: the output of `selectivbench grammar --json`, and the format of a user's own automaton.
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

// Writes one object. `states` are the names in order. `transitions` are [source, destination, probability] with indices
// into `states`. `state_ids` are the numbers that a model predicts. `symbols` is the class of each state. The other
// members are figures. `config` holds the parameters the automaton was built from; without it, ambiguities and depth
// are counted and the seed is null.
std::string automaton_to_json(const Automaton& automaton, const std::optional<GrammarConfig>& config,
                              const Figures& figures);

// Reads the same object; only `states`, `start_states` and `transitions` are required. Without `symbols`, a state's
// symbol is the leading letters of its name ("C2" is symbol C, class 3). Without `state_ids`, ids are assigned by
// class, then by state order. Everything is checked; an error is one line of bad_input that names `file` and the
// location.
Automaton automaton_from_json(std::string_view text, const std::string& file);
Automaton read_automaton(const std::string& file);

}  // namespace sb
