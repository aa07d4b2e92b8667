// Strongly connected components of the automaton with additional edges from '#' to the start states.
#pragma once
#include <vector>

#include "grammar/automaton.h"

namespace sb {

std::vector<std::vector<int32_t>> strong_components(const Automaton& automaton);

}  // namespace sb
