// Automata and the languages they generate: build_automaton, read_automaton, Sampler.
#pragma once
#include "grammar/automaton_json.h"
#include "grammar/build.h"
#include "grammar/sampler.h"
