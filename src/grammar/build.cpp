#include "grammar/build.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "grammar/check.h"
#include "grammar/poll.h"

namespace sb {
namespace {

constexpr int kMaxAttempts = 100000;         // the reference's limit
constexpr double kMaxDraws = 5e8;            // over all attempts, about two seconds; at least four attempts are made
constexpr double kMaxTransitions = 1 << 25;  // expected; 400 MB
// Least probability of success over all attempts: if as many attempts as the reference's are allowed, and if fewer are.
constexpr double kHopeless = 1e-9;
constexpr double kHopelessWhenLarge = 1e-3;

double density_of(const GrammarConfig& c) {
  return c.density < 0 ? 0.4 / c.depth : c.density;
}
int64_t state_count(const GrammarConfig& c) {
  return int64_t{c.vocab} - 1 - c.ambiguities + int64_t{c.ambiguities} * c.depth + 1;
}

void check_ranges(const GrammarConfig& c) {
  if (c.vocab < 2) {
    throw bad_input("grammar.vocab",
                    formatted("too few symbols, expected at least 2 ('#' and one letter), got {}", c.vocab));
  }
  if (c.ambiguities < 0 || c.ambiguities > c.vocab - 1) {
    throw bad_input("grammar.ambiguities",
                    formatted("ambiguous letters, expected 0 to vocab - 1 ({}), got {}", c.vocab - 1, c.ambiguities));
  }
  if (c.depth < 1) {
    throw bad_input("grammar.depth", formatted("states of an ambiguous letter, expected at least 1, got {}", c.depth));
  }
  if (const int64_t n = state_count(c); n > kMaxStates) {
    throw bad_input("grammar",
                    formatted("vocab ({}), ambiguities ({}) and depth ({}) give too many states, expected at most "
                              "{}, got {}",
                              c.vocab, c.ambiguities, c.depth, kMaxStates, n));
  }
  const int widest = c.ambiguities > 0 ? c.depth : 1;
  const double density = density_of(c);
  if (!std::isfinite(c.density) || density <= 0 || density * widest > 1.0 + 1e-12) {
    throw bad_input("grammar.density",
                    formatted("probability of an edge between two states, expected above 0 and at most "
                              "1/{} (a letter's {} states share it), got {}",
                              widest, widest, c.density));
  }
  if (const auto n = state_count(c); c.start_states < 1 || c.start_states > n - 1) {
    throw bad_input("grammar.start_states",
                    formatted("start states, expected 1 to {} (all states but '#'), got {}", n - 1, c.start_states));
  }
}

// Probabilities of single conditions of an attempt; all_exit, end_reached and start bound its chance of success.
struct Chances {
  double no_exit;      // one state has no edge at all
  double all_exit;     // every state but '#' has one
  double end_reached;  // '#' has a predecessor
  double start;        // '#' is not drawn as a start state
  double attempt() const { return std::min(all_exit, end_reached) * start; }
};

Chances chances_of(const GrammarConfig& c) {
  const double density = density_of(c);
  const double others = static_cast<double>(state_count(c) - 1);
  const double ambiguous = std::min(1.0, c.depth * density);
  Chances out{};
  out.no_exit = std::pow(1 - density, c.vocab - c.ambiguities) * std::pow(1 - ambiguous, c.ambiguities);
  out.all_exit = std::exp(others * std::log1p(-out.no_exit));
  out.end_reached = -std::expm1(others * std::log1p(-density));
  out.start = 1 - c.start_states / (others + 1);
  return out;
}

int attempts_allowed(const GrammarConfig& c) {
  const auto n = static_cast<double>(state_count(c));
  return static_cast<int>(std::clamp(kMaxDraws / (n * (n + c.vocab)), 4.0, double{kMaxAttempts}));
}

void check_feasible(const GrammarConfig& c) {
  const auto n = static_cast<double>(state_count(c));
  const double expected = n * density_of(c) * n;
  if (expected > kMaxTransitions) {
    throw bad_input("grammar.density", formatted("too many transitions, expected at most {:.0f}, got about {:.0f}",
                                                 kMaxTransitions, expected));
  }
  const Chances chances = chances_of(c);
  const int allowed = attempts_allowed(c);
  if (chances.attempt() * allowed >= (allowed == kMaxAttempts ? kHopeless : kHopelessWhenLarge)) return;
  if (chances.all_exit <= chances.end_reached) {
    throw bad_input("grammar",
                    formatted("states without exit: each of {:.0f} states has none with probability {:.3g} at density "
                              "{:.3g}, so that {} attempts give no grammar; expected a higher density, more letters "
                              "or fewer states",
                              n - 1, chances.no_exit, density_of(c), allowed));
  }
  throw bad_input("grammar",
                  formatted("no way to '#': a state leads to it with probability {:.3g} (the density), so that {} "
                            "attempts give no grammar; expected a higher density or more states",
                            density_of(c), allowed));
}

// One attempt: the states of each letter, and at most one successor for each (state, letter).
class Attempt {
 public:
  Attempt(const GrammarConfig& c, const std::function<void()>& poll)
      : config_(c),
        letters_(c.vocab - 1),
        states_(static_cast<int>(state_count(c))),
        density_(density_of(c)),
        poll_(poll) {
    first_.resize(static_cast<size_t>(c.vocab));
    ambiguous_.resize(static_cast<size_t>(letters_));
    row_.resize(static_cast<size_t>(states_) + 1);
    swaps_.resize(static_cast<size_t>(std::max(c.depth, 2)));
  }

  void draw(Pcg64& edges, PythonRandom& symbols) {
    draw_letters(symbols);
    draw_edges(edges);
    const auto start = edges.choice(static_cast<uint32_t>(states_), static_cast<uint32_t>(config_.start_states));
    start_.assign(start.begin(), start.end());
  }

  // The automaton; null if '#' is a start state or if a state has no path to '#'.
  std::shared_ptr<const Automaton> automaton() const {
    if (!all_exit_ || std::find(start_.begin(), start_.end(), states_ - 1) != start_.end()) return nullptr;
    auto out = std::make_shared<Automaton>();
    out->end = states_ - 1;
    out->start = start_;
    out->row = row_;
    out->dst = dst_;
    out->names.resize(static_cast<size_t>(states_));
    const auto reaches = reaches_end(*out);
    if (std::find(reaches.begin(), reaches.end(), false) != reaches.end()) return nullptr;
    name_states(*out);
    out->prob.resize(dst_.size());
    for (int s = 0; s < states_; ++s) {
      const int degree = out->out_degree(s);
      std::fill_n(out->prob.begin() + row_[s], degree, 1.0 / degree);
    }
    return out;
  }

 private:
  void name_states(Automaton& out) const {
    out.vocab = config_.vocab;
    out.symbol.resize(static_cast<size_t>(states_));
    out.id.resize(static_cast<size_t>(states_));
    out.names.back() = "#";
    int32_t next_id = 1;
    for (int letter = 0; letter < letters_; ++letter) {
      const std::string name = letter_name(letter);
      for (int k = 0; k < width(letter); ++k) {
        const auto state = static_cast<size_t>(first_[letter] + k);
        out.names[state] = ambiguous_[letter] ? name + std::to_string(k) : name;
        out.symbol[state] = letter + 1;
        out.id[state] = next_id++;
      }
    }
  }

  int width(int letter) const { return letter < letters_ && ambiguous_[letter] ? config_.depth : 1; }

  void draw_letters(PythonRandom& symbols) {
    std::vector<uint32_t> order;
    if (config_.ambiguities > 0) {
      order = symbols.sample(static_cast<uint32_t>(letters_), static_cast<uint32_t>(config_.ambiguities));
    }
    std::fill(ambiguous_.begin(), ambiguous_.end(), false);
    for (const uint32_t letter : order) ambiguous_[letter] = true;
    int state = 0;
    for (size_t letter = 0; letter < ambiguous_.size(); ++letter) {
      if (!ambiguous_[letter]) first_[letter] = state++;
    }
    for (const uint32_t letter : order) {
      first_[letter] = state;
      state += config_.depth;
    }
    first_.back() = state;
  }

  void draw_edges(Pcg64& generator) {
    Pcg64 edges = generator;  // a local stays in registers
    dst_.clear();
    all_exit_ = true;
    const double single = density_;
    const double shared = config_.depth * density_;
    for (int source = 0; source < states_; ++source) {
      row_[source] = static_cast<int32_t>(dst_.size());
      const bool end = source == states_ - 1;
      for (int letter = 0; letter <= letters_; ++letter) {
        const int n = width(letter);
        if (n > 1) draw_swaps(edges, static_cast<uint32_t>(n));
        if (edges.random() < (n > 1 ? shared : single) && !end) dst_.push_back(first_[letter] + first_place(n));
      }
      const auto from = dst_.begin() + row_[source];
      if (from == dst_.end() && !end) all_exit_ = false;
      std::sort(from, dst_.end());
      poll_.after(states_);
    }
    row_.back() = static_cast<int32_t>(dst_.size());
    generator = edges;
  }

  // The swaps of numpy's permutation(n): place i, from the last one down to 1, with a masked draw of 0..i.
  void draw_swaps(Pcg64& edges, uint32_t n) {
    uint32_t* swaps = swaps_.data();
    uint32_t i = n - 1;
    const auto take = [&](uint32_t draw) {
      draw &= UINT32_MAX >> std::countl_zero(i);
      swaps[i] = draw;
      i -= draw <= i ? 1 : 0;
      return i > 0;
    };
    if (edges.has_half() && !take(edges.next32())) return;
    for (;;) {
      const uint64_t both = edges.next64();
      if (!take(static_cast<uint32_t>(both))) return edges.keep_half(static_cast<uint32_t>(both >> 32));
      if (!take(static_cast<uint32_t>(both >> 32))) return edges.used_half(static_cast<uint32_t>(both >> 32));
    }
  }

  // numpy's permutation(n)[0], traced back from place 0 through the swaps.
  int32_t first_place(int n) const {
    uint32_t place = 0;
    for (uint32_t i = 1; i < static_cast<uint32_t>(n); ++i) place = swaps_[i] == place ? i : place;
    return static_cast<int32_t>(place);
  }

  const GrammarConfig& config_;
  int letters_;
  int states_;
  double density_;
  Poll poll_;
  std::vector<int32_t> first_;  // first state of each letter, then of '#'
  std::vector<bool> ambiguous_;
  std::vector<int32_t> row_, dst_, start_;
  std::vector<uint32_t> swaps_;
  bool all_exit_ = false;
};

}  // namespace

std::string letter_name(int letter) {
  std::string name;
  for (int n = letter + 1; n > 0; n = (n - 1) / 52) {
    const int digit = (n - 1) % 52;
    name.insert(name.begin(), static_cast<char>(digit < 26 ? 'A' + digit : 'a' + digit - 26));
  }
  return name;
}

GrammarDraw draw_grammar(const GrammarConfig& config, const std::function<void()>& poll) {
  check_ranges(config);
  check_feasible(config);
  Pcg64 edges(config.seed);
  const auto symbol_seed = static_cast<int>(edges.bounded(99));
  PythonRandom symbols(static_cast<uint128>(symbol_seed));
  Attempt attempt(config, poll);
  const int allowed = attempts_allowed(config);
  for (int n = 1; n <= allowed; ++n) {
    attempt.draw(edges, symbols);
    if (auto automaton = attempt.automaton()) return {std::move(automaton), n, symbol_seed, edges, symbols};
  }
  throw bad_input("grammar",
                  formatted("no grammar in {} attempts: a state had no path to '#' or '#' was a start state each "
                            "time (an attempt passes with probability {:.3g} at most); expected a higher density, "
                            "another seed or fewer states",
                            allowed, chances_of(config).attempt()));
}

std::shared_ptr<const Automaton> build_automaton(const GrammarConfig& config, const std::function<void()>& poll) {
  return draw_grammar(config, poll).automaton;
}

}  // namespace sb
