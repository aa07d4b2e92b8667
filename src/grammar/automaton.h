// A finite automaton whose states emit symbols. Every task is built on one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace sb {

// States are indexed in the order of the reference ("states" of its files); `id` is the number that a model predicts.
// State s has edges [row[s], row[s+1]), ascending by destination; the probabilities of a row sum to 1.
struct Automaton {
  int vocab = 0;                   // number of symbols, including the end symbol '#' (class 0)
  std::vector<std::string> names;  // state names, e.g. "A", "C2", "#"
  std::vector<int32_t> symbol;     // class of each state, 0..vocab-1
  std::vector<int32_t> id;         // target id of each state, a permutation of 0..states-1, '#' is 0
  int32_t end = 0;                 // index of '#'; it has no outgoing edges
  std::vector<int32_t> start;      // start states, drawn uniformly
  std::vector<int32_t> row;        // states + 1 offsets
  std::vector<int32_t> dst;
  std::vector<double> prob;

  int states() const { return static_cast<int>(names.size()); }
  int transitions() const { return static_cast<int>(dst.size()); }
  int out_degree(int s) const { return row[s + 1] - row[s]; }
};

// Parameters of the reference's construction. density < 0 means the reference's 0.4 / depth.
struct GrammarConfig {
  int vocab = 41;
  int ambiguities = 40;
  int depth = 40;
  double density = -1;
  int start_states = 4;
  uint64_t seed = 1;
};

}  // namespace sb
