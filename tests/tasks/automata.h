// Small automata for tests: written out by hand, or drawn at random.
#pragma once
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/build.h"
#include "grammar/sampler.h"

namespace sb::test {

struct Arrow {
  int src, dst;
  double weight;
};

// State 0 is '#'; `symbol` gives the classes; weights of a row are normalised. Ids run backwards, so that an index
// taken for an id shows.
inline std::shared_ptr<const Automaton> automaton(int vocab, std::vector<int32_t> symbol, std::vector<int32_t> start,
                                                  const std::vector<Arrow>& arrows) {
  auto a = std::make_shared<Automaton>();
  const int states = static_cast<int>(symbol.size());
  a->vocab = vocab;
  a->symbol = std::move(symbol);
  a->start = std::move(start);
  a->end = 0;
  for (int s = 0; s < states; ++s) {
    a->names.push_back(s == 0 ? "#" : "S" + std::to_string(s));
    a->id.push_back(s == 0 ? 0 : states - s);
    a->row.push_back(static_cast<int32_t>(a->dst.size()));
    double total = 0;
    for (const Arrow& arrow : arrows) total += arrow.src == s ? arrow.weight : 0;
    for (int d = 0; d < states; ++d) {
      for (const Arrow& arrow : arrows) {
        if (arrow.src != s || arrow.dst != d) continue;
        a->dst.push_back(d);
        a->prob.push_back(arrow.weight / total);
      }
    }
  }
  a->row.push_back(static_cast<int32_t>(a->dst.size()));
  return a;
}

// Two start states of one symbol that only the third element tells apart; unequal weights.
inline std::shared_ptr<const Automaton> twins() {
  return automaton(4, {0, 1, 1, 2, 2, 3}, {1, 2},
                   {{1, 3, 2}, {1, 0, 1}, {2, 4, 5}, {2, 0, 1}, {3, 5, 1}, {3, 0, 3}, {4, 1, 2}, {4, 0, 1}, {5, 0, 1}});
}

// Successors of the same symbol, self-loops and a state (1) after which every class may follow.
inline std::shared_ptr<const Automaton> forked() {
  return automaton(3, {0, 1, 1, 2, 2}, {1, 3},
                   {{1, 1, 1},
                    {1, 2, 3},
                    {1, 3, 2},
                    {1, 4, 1},
                    {1, 0, 1},
                    {2, 2, 4},
                    {2, 0, 1},
                    {3, 4, 1},
                    {3, 1, 2},
                    {4, 0, 2},
                    {4, 4, 1}});
}

// Up to six states, two to four classes, every state one step from '#' at some chance.
inline std::shared_ptr<const Automaton> random_automaton(uint32_t seed) {
  std::mt19937 draw(seed);
  const int vocab = 2 + static_cast<int>(draw() % 3);
  const int states = std::max(vocab, 3 + static_cast<int>(draw() % 4));
  std::vector<int32_t> symbol{0};
  for (int s = 1; s < states; ++s) symbol.push_back(s < vocab ? s : 1 + static_cast<int32_t>(draw() % (vocab - 1)));
  std::vector<Arrow> arrows;
  for (int s = 1; s < states; ++s) {
    arrows.push_back({s, 0, 1.0 + static_cast<int>(draw() % 3)});
    for (int d = 1; d < states; ++d) {
      if (draw() % 2 == 0) arrows.push_back({s, d, 1.0 + static_cast<int>(draw() % 7)});
    }
  }
  std::vector<int32_t> start{1};
  for (int s = 2; s < states; ++s) {
    if (draw() % 2 == 0) start.push_back(s);
  }
  return automaton(vocab, symbol, start, arrows);
}

// Classes that no arrow leads to, by state; every class after '#'.
inline std::vector<std::vector<int32_t>> forbidden(const Automaton& a) {
  std::vector<std::vector<int32_t>> out(static_cast<size_t>(a.states()));
  for (int s = 0; s < a.states(); ++s) {
    for (int c = 0; c < a.vocab; ++c) {
      bool follows = false;
      for (int e = a.row[s]; e < a.row[s + 1]; ++e) follows = follows || a.symbol[a.dst[e]] == c;
      if (!follows) out[static_cast<size_t>(s)].push_back(c);
    }
  }
  return out;
}

inline std::shared_ptr<const Sampler> sampler(std::shared_ptr<const Automaton> a, int length, uint64_t seed = 1,
                                              Stream stream = Stream::direct) {
  return std::make_shared<Sampler>(std::move(a), SamplerConfig{seed, length, stream});
}

inline std::shared_ptr<const Sampler> paper_sampler(uint64_t seed, Stream stream = Stream::direct) {
  return sampler(build_automaton({41, 40, 40, -1, 4, seed}), 200, seed, stream);
}

}  // namespace sb::test
