// Pictures of an automaton, as text.
#pragma once
#include <string>

#include "grammar/automaton.h"

namespace sb {

constexpr int kMaxDrawnInFull = 40;  // states; with more, the SVG shows the adjacency matrix

std::string to_dot(const Automaton& automaton);  // for Graphviz, every state and edge
std::string to_svg(const Automaton& automaton);

}  // namespace sb
