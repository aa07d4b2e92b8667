#include "grammar/check.h"

#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "grammar/build.h"

namespace sb {
namespace {

constexpr double kSumTolerance = 1e-6;

[[noreturn]] void fail(const std::string& what) {
  throw bad_input("automaton", what);
}

void check_states(const Automaton& a) {
  const auto n = a.names.size();
  if (n < 2 || n > static_cast<size_t>(kMaxStates)) {
    fail(formatted("number of states, expected 2 to {}, got {}", kMaxStates, n));
  }
  if (a.symbol.size() != n || a.id.size() != n || a.row.size() != n + 1) {
    fail(formatted("symbols, ids and rows, expected {}, {} and {}, got {}, {} and {}", n, n, n + 1, a.symbol.size(),
                   a.id.size(), a.row.size()));
  }
  if (a.end < 0 || a.end >= a.states()) fail(formatted("end state, expected 0 to {}, got {}", n - 1, a.end));
  std::vector<bool> taken(n, false);
  for (int s = 0; s < a.states(); ++s) {
    const int low = s == a.end ? 0 : 1;
    const int high = s == a.end ? 0 : a.vocab - 1;
    if (a.symbol[s] < low || a.symbol[s] > high) {
      fail(formatted("class of state {}, expected {} to {}, got {}", a.names[s], low, high, a.symbol[s]));
    }
    if (a.id[s] < 0 || a.id[s] >= a.states() || taken[a.id[s]] || (a.id[s] == 0) != (s == a.end)) {
      fail(formatted("id of state {}, expected a permutation of 0 to {} with 0 for '#', got {}", a.names[s], n - 1,
                     a.id[s]));
    }
    taken[a.id[s]] = true;
  }
}

void check_edges(const Automaton& a) {
  if (a.prob.size() != a.dst.size() || a.row.front() != 0 || static_cast<size_t>(a.row.back()) != a.dst.size()) {
    fail("edge arrays disagree in length");
  }
  for (int s = 0; s < a.states(); ++s) {
    if (a.row[s + 1] < a.row[s]) fail(formatted("edges of state {} out of order", a.names[s]));
  }
  for (int s = 0; s < a.states(); ++s) {
    const int degree = a.out_degree(s);
    if (s == a.end && degree != 0) fail(formatted("edges out of '#', expected none, got {}", degree));
    if (s != a.end && degree == 0) fail(formatted("state {} has no exit", a.names[s]));
    double sum = 0;
    for (int e = a.row[s]; e < a.row[s + 1]; ++e) {
      if (a.dst[e] < 0 || a.dst[e] >= a.states()) {
        fail(formatted("edge of state {} to state number {}, expected 0 to {}", a.names[s], a.dst[e], a.states() - 1));
      }
      if (e > a.row[s] && a.dst[e] <= a.dst[e - 1]) {
        fail(formatted("edges of state {}, expected ascending destinations, got {} after {}", a.names[s],
                       a.names[a.dst[e]], a.names[a.dst[e - 1]]));
      }
      if (!(a.prob[e] > 0 && a.prob[e] <= 1)) {
        fail(formatted("probability of {} to {}, expected above 0 and at most 1, got {}", a.names[s], a.names[a.dst[e]],
                       a.prob[e]));
      }
      sum += a.prob[e];
    }
    if (s != a.end && std::abs(sum - 1) > kSumTolerance) {
      fail(formatted("probabilities of state {}, expected a sum of 1, got {}", a.names[s], sum));
    }
  }
}

}  // namespace

std::vector<bool> reaches_end(const Automaton& a) {
  const auto n = static_cast<size_t>(a.states());
  std::vector<int32_t> offset(n + 1), source(a.dst.size());
  for (const int32_t d : a.dst) ++offset[static_cast<size_t>(d) + 1];
  for (size_t s = 0; s < n; ++s) offset[s + 1] += offset[s];
  std::vector<int32_t> fill(offset.begin(), offset.end() - 1);
  for (size_t s = 0; s < n; ++s) {
    for (int32_t e = a.row[s]; e < a.row[s + 1]; ++e) source[fill[a.dst[e]]++] = static_cast<int32_t>(s);
  }
  std::vector<bool> reaches(n, false);
  std::vector<int32_t> queue{a.end};
  reaches[a.end] = true;
  for (size_t next = 0; next < queue.size(); ++next) {
    const int32_t d = queue[next];
    for (int32_t e = offset[d]; e < offset[d + 1]; ++e) {
      if (reaches[source[e]]) continue;
      reaches[source[e]] = true;
      queue.push_back(source[e]);
    }
  }
  return reaches;
}

void check(const Automaton& a) {
  check_states(a);
  check_edges(a);
  if (a.start.empty()) fail("no start state, expected at least 1");
  std::vector<bool> taken(a.names.size(), false);
  for (const int32_t s : a.start) {
    if (s < 0 || s >= a.states() || s == a.end || taken[s]) {
      fail(formatted("start state number {}, expected different ones of 0 to {} other than '#'", s, a.states() - 1));
    }
    taken[s] = true;
  }
  const auto reaches = reaches_end(a);
  for (int s = 0; s < a.states(); ++s) {
    if (!reaches[s]) fail(formatted("state {} has no path to '#'", a.names[s]));
  }
}

}  // namespace sb
