#include "grammar/figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "grammar/components.h"
#include "grammar/poll.h"
#include "grammar/reach.h"
#include "random/pcg64.h"

namespace sb {
namespace {

constexpr double kWork = 2e9;  // edge visits after which an iteration stops with its current value

// Edges of the closed chain, '#' to the start states included, over a subset of the states renumbered from 0.
struct Chain {
  std::vector<int32_t> row{0}, dst;
  std::vector<double> prob;
  int32_t end = -1;  // '#', if it is among them
  size_t size() const { return row.size() - 1; }
  int64_t work() const { return static_cast<int64_t>(dst.size() + row.size()); }  // of a round over all edges
};

Chain restrict_to(const Automaton& a, const std::vector<int32_t>& states) {
  std::vector<int32_t> number(a.names.size(), -1);
  for (size_t i = 0; i < states.size(); ++i) number[states[i]] = static_cast<int32_t>(i);
  Chain chain;
  chain.end = number[a.end];
  const auto add = [&](int32_t to, double p) {
    if (number[to] < 0) return;
    chain.dst.push_back(number[to]);
    chain.prob.push_back(p);
  };
  for (const int32_t s : states) {
    if (s == a.end) {
      for (const int32_t t : a.start) add(t, 1.0 / static_cast<double>(a.start.size()));
    } else {
      for (int e = a.row[s]; e < a.row[s + 1]; ++e) add(a.dst[e], a.prob[e]);
    }
    chain.row.push_back(static_cast<int32_t>(chain.dst.size()));
  }
  return chain;
}

// Largest eigenvalue of the 0/1 table of a strongly connected chain: power iteration on table + 1, which is primitive,
// until the smallest and largest growth of an entry (bounds of the eigenvalue, Collatz and Wielandt) agree.
double growth_rate(const Chain& chain, Poll& poll) {
  const size_t n = chain.size();
  std::vector<double> now(n, 1.0), next(n);
  double low = 0;
  double high = 0;
  const double rounds = std::max(1000.0, kWork / static_cast<double>(chain.dst.size() + n));
  for (double round = 0; round < rounds; ++round) {
    poll.after(chain.work());
    low = std::numeric_limits<double>::infinity();
    high = 0;
    double largest = 0;
    for (size_t s = 0; s < n; ++s) {
      double sum = now[s];
      for (int32_t e = chain.row[s]; e < chain.row[s + 1]; ++e) sum += now[chain.dst[e]];
      next[s] = sum;
      low = std::min(low, sum / now[s]);
      high = std::max(high, sum / now[s]);
      largest = std::max(largest, sum);
    }
    if (high - low <= 1e-14 * high) break;
    for (size_t s = 0; s < n; ++s) now[s] = next[s] / largest;
  }
  return (low + high) / 2 - 1;
}

// The stationary law by elimination (Grassmann, Taksar and Heyman: no subtraction, so no cancellation).
std::vector<double> stationary_by_elimination(const Chain& chain) {
  const size_t n = chain.size();
  std::vector<double> p(n * n, 0.0);
  for (size_t s = 0; s < n; ++s) {
    for (int32_t e = chain.row[s]; e < chain.row[s + 1]; ++e)
      p[s * n + static_cast<size_t>(chain.dst[e])] += chain.prob[e];
  }
  for (size_t k = n - 1; k > 0; --k) {
    const double out =
        std::accumulate(p.begin() + static_cast<long>(k * n), p.begin() + static_cast<long>(k * n + k), 0.0);
    for (size_t i = 0; i < k; ++i) {
      const double in = p[i * n + k] /= out;
      for (size_t j = 0; j < k; ++j) p[i * n + j] += in * p[k * n + j];
    }
  }
  std::vector<double> law(n, 0.0);
  law[0] = 1;
  for (size_t k = 1; k < n; ++k) {
    for (size_t i = 0; i < k; ++i) law[k] += law[i] * p[i * n + k];
  }
  const double total = std::accumulate(law.begin(), law.end(), 0.0);
  for (double& x : law) x /= total;
  return law;
}

std::vector<double> stationary(const Chain& chain, Poll& poll) {
  constexpr size_t kEliminationStates = 256;
  constexpr double kStay = 0.1;  // makes a periodic chain converge
  const size_t n = chain.size();
  if (n <= kEliminationStates) return stationary_by_elimination(chain);
  std::vector<double> now(n, 1.0 / static_cast<double>(n)), next(n);
  const double rounds = std::max(1000.0, kWork / static_cast<double>(chain.dst.size() + n));
  for (double round = 0; round < rounds; ++round) {
    poll.after(chain.work());
    for (size_t s = 0; s < n; ++s) next[s] = kStay * now[s];
    for (size_t s = 0; s < n; ++s) {
      for (int32_t e = chain.row[s]; e < chain.row[s + 1]; ++e) {
        next[chain.dst[e]] += (1 - kStay) * now[s] * chain.prob[e];
      }
    }
    const double total = std::accumulate(next.begin(), next.end(), 0.0);
    double moved = 0;
    for (size_t s = 0; s < n; ++s) {
      next[s] /= total;
      moved += std::abs(next[s] - now[s]);
    }
    std::swap(now, next);
    if (moved < 1e-15) break;
  }
  return now;
}

// Modulus of the second eigenvalue: the rate at which a vector without stationary part shrinks. If a complex pair
// dominates, the rate oscillates, and its mean over the counted steps has an error of about one percent.
double second_modulus(const Chain& chain, const std::vector<double>& law, Poll& poll) {
  constexpr int kSettle = 128;
  constexpr int kCounted = 256;
  const size_t n = chain.size();
  Pcg64 rng(uint128{1});
  std::vector<double> now(n), next(n);
  for (double& x : now) x = rng.random() - 0.5;
  double log_growth = 0;
  for (int step = -kSettle; step < kCounted; ++step) {
    poll.after(chain.work());
    const double mean = std::inner_product(now.begin(), now.end(), law.begin(), 0.0);
    double norm = 0;
    for (double& x : now) {
      x -= mean;
      norm += x * x;
    }
    norm = std::sqrt(norm);
    if (norm < 1e-250) return 0;
    if (step > -kSettle && norm < 1e-14) return 0;  // one step left only rounding: all other eigenvalues are zero
    if (step > 0) log_growth += std::log(norm);
    for (double& x : now) x /= norm;
    for (size_t s = 0; s < n; ++s) {
      double sum = 0;
      for (int32_t e = chain.row[s]; e < chain.row[s + 1]; ++e) sum += chain.prob[e] * now[chain.dst[e]];
      next[s] = sum;
    }
    std::swap(now, next);
  }
  return std::min(1.0, std::exp(log_growth / (kCounted - 1)));
}

double entropy(const Automaton& a, Poll& poll) {
  double largest = 0;
  for (const auto& component : strong_components(a)) {
    const Chain chain = restrict_to(a, component);
    if (!chain.dst.empty()) largest = std::max(largest, growth_rate(chain, poll));
  }
  return std::log(largest);
}

}  // namespace

double topological_entropy(const Automaton& a, const std::function<void()>& poll) {
  Poll paced(poll);
  return entropy(a, paced);
}

Figures figures(const Automaton& a, int fit_length, const std::function<void()>& poll) {
  Poll paced(poll);
  Figures out;
  out.states = a.states();
  out.transitions = a.transitions();
  out.mean_out_degree = static_cast<double>(a.transitions()) / std::max(1, a.states() - 1);
  out.ending_states = static_cast<int>(std::count(a.dst.begin(), a.dst.end(), a.end));
  std::set<int32_t> symbols;
  for (const int32_t s : a.start) symbols.insert(a.symbol[s]);
  out.start_symbols = static_cast<int>(symbols.size());
  out.topological_entropy = entropy(a, paced);

  std::vector<int32_t> recurrent;
  for (const auto& component : strong_components(a)) {
    if (std::find(component.begin(), component.end(), a.end) != component.end()) recurrent = component;
  }
  const Chain chain = restrict_to(a, recurrent);
  const auto law = stationary(chain, paced);
  out.mean_string_length = 1 / law[static_cast<size_t>(chain.end)];  // a string is one return to '#'
  out.mixing_rate = second_modulus(chain, law, paced);
  out.relaxation = out.mixing_rate <= 0   ? 0
                   : out.mixing_rate >= 1 ? std::numeric_limits<double>::infinity()
                                          : -1 / std::log(out.mixing_rate);
  out.fit_length = fit_length;
  out.fit_probability = fit_probability(a, fit_length);
  return out;
}

}  // namespace sb
