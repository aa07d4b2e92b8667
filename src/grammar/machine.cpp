#include "grammar/machine.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr int kModulus = 5;  // of the cycle and of modular arithmetic

using Step = std::function<int(int state, int symbol)>;

// The answer is the state.
Machine machine_of(int states, int symbols, const Step& step) {
  Machine out{.states = states, .symbols = symbols, .answers = states};
  for (int state = 0; state < states; ++state) {
    out.answer.push_back(state);
    for (int symbol = 0; symbol < symbols; ++symbol) out.next.push_back(step(state, symbol));
  }
  return out;
}

Machine cyclic_group(int order) {
  return machine_of(order, order, [=](int g, int h) { return (g + h) % order; });
}

using Permutation = std::vector<int>;

bool is_even(const Permutation& p) {
  int inversions = 0;
  for (size_t i = 0; i < p.size(); ++i)
    for (size_t j = i + 1; j < p.size(); ++j) inversions += p[i] > p[j];
  return inversions % 2 == 0;
}

Machine permutation_group(int points, bool only_even) {
  std::vector<Permutation> elements;
  Permutation p(static_cast<size_t>(points));
  std::iota(p.begin(), p.end(), 0);
  do {
    if (!only_even || is_even(p)) elements.push_back(p);
  } while (std::next_permutation(p.begin(), p.end()));
  const int order = static_cast<int>(elements.size());
  return machine_of(order, order, [&](int g, int h) {
    Permutation product;
    for (const int point : elements[static_cast<size_t>(g)])
      product.push_back(elements[static_cast<size_t>(h)][static_cast<size_t>(point)]);
    return static_cast<int>(std::lower_bound(elements.begin(), elements.end(), product) - elements.begin());
  });
}

Machine direct_product(const Machine& a, const Machine& b) {
  const int order = a.states * b.states;
  return machine_of(order, order, [&](int g, int h) {
    return a.step(g / b.states, h / b.states) * b.states + b.step(g % b.states, h % b.states);
  });
}

Machine cycle() {
  return machine_of(kModulus, 3, [](int at, int symbol) {
    const int moves[] = {0, 1, kModulus - 1};
    return (at + moves[symbol]) % kModulus;
  });
}

Machine modular_arithmetic() {
  constexpr int m = kModulus;
  Machine out = machine_of(m * m, 3 * m, [](int state, int symbol) {
    const int sum = state / m, term = state % m, digit = symbol % m;
    switch (symbol / m) {
      case 0:
        return (sum + term) % m * m + digit;
      case 1:
        return (sum + term) % m * m + (m - digit) % m;
      default:
        return sum * m + term * digit % m;
    }
  });
  out.answers = m;
  for (int32_t& state : out.answer) state = (state / m + state % m) % m;
  return out;
}

// Made once: estimates of a suite ask for the same few groups many times.
template <int points, bool only_even>
const Machine& permutations() {
  static const Machine group = permutation_group(points, only_even);
  return group;
}

struct Row {
  std::string name;
  Machine (*make)();
};

const std::vector<Row>& machines() {
  static const std::vector<Row> rows = {
      {"parity", [] { return cyclic_group(2); }},
      {"cycle", cycle},
      {"modular_arithmetic", modular_arithmetic},
      {"z60", [] { return cyclic_group(60); }},
      {"a4_z5", [] { return direct_product(permutations<4, true>(), cyclic_group(5)); }},
      {"a5", [] { return permutations<5, true>(); }},
      {"s5", [] { return permutations<5, false>(); }},
  };
  return rows;
}

}  // namespace

const std::vector<std::string>& machine_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Row& row : machines()) out.push_back(row.name);
    return out;
  }();
  return names;
}

Machine make_machine(const std::string& name) {
  for (const Row& row : machines())
    if (row.name == name) return row.make();
  throw bad_input("machine", "expected one of " + joined(machine_names(), ", ") + ", got '" + printable(name) + "'");
}

}  // namespace sb
