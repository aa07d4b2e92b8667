// Small automata to test with.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>

#include "grammar/automaton.h"

namespace sb::test {

struct Edge {
  int src, dst;
  double prob;
};

// States A, B, … of one letter each and '#' last; edges in order of source, then destination.
inline std::shared_ptr<Automaton> make_automaton(int letters, std::initializer_list<int> start,
                                                 std::initializer_list<Edge> edges) {
  auto a = std::make_shared<Automaton>();
  a->vocab = letters + 1;
  for (int i = 0; i < letters; ++i) {
    a->names.emplace_back(1, static_cast<char>('A' + i));
    a->symbol.push_back(i + 1);
    a->id.push_back(i + 1);
  }
  a->names.emplace_back("#");
  a->symbol.push_back(0);
  a->id.push_back(0);
  a->end = letters;
  a->start.assign(start.begin(), start.end());
  a->row.assign(static_cast<size_t>(letters) + 2, 0);
  for (const Edge& e : edges) {
    a->dst.push_back(e.dst);
    a->prob.push_back(e.prob);
    for (int s = e.src + 1; s <= letters + 1; ++s) ++a->row[s];
  }
  return a;
}

// A -> A or #, each with the given chance.
inline std::shared_ptr<Automaton> coin(double stay) {
  return make_automaton(1, {0}, {{0, 0, stay}, {0, 1, 1 - stay}});
}

}  // namespace sb::test
