// The direct sampler and the rejection sampler follow one law.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "automata.h"
#include "grammar/build.h"
#include "grammar/direct_walk.h"
#include "grammar/reach.h"
#include "grammar/sampler.h"

namespace sb {
namespace {

// What is counted: transitions (with '#' to start), lengths of the complete strings, and start states.
struct Counts {
  std::map<int64_t, double> transitions, lengths, starts;
};

Counts count(const Automaton& a, const SampleBlock& block) {
  Counts out;
  for (size_t i = 0; i < block.count(); ++i) {
    const uint16_t* s = block.sample(i);
    int begin = 0;
    for (int t = 0; t < block.length; ++t) {
      if (t == begin) ++out.starts[s[t]];
      if (t > 0) ++out.transitions[int64_t{s[t - 1]} * kMaxStates + s[t]];
      if (s[t] != a.end) continue;
      // Only the first string of a sample is never cut, since it may take the whole sample.
      if (begin == 0) ++out.lengths[t + 1];
      begin = t + 1;
    }
  }
  return out;
}

struct ChiSquare {
  double statistic = 0;
  double freedom = 0;
  // Standard normal deviate of the same tail (Wilson and Hilferty).
  double deviate() const {
    const double k = freedom;
    return (std::cbrt(statistic / k) - (1 - 2 / (9 * k))) / std::sqrt(2 / (9 * k));
  }
};

// Two-sample test; cells with fewer than 20 counts together are pooled.
ChiSquare compare(const std::map<int64_t, double>& a, const std::map<int64_t, double>& b) {
  std::map<int64_t, std::pair<double, double>> cells;
  for (const auto& [cell, n] : a) cells[cell].first = n;
  for (const auto& [cell, n] : b) cells[cell].second = n;
  std::pair<double, double> rare{0, 0}, total{0, 0};
  std::vector<std::pair<double, double>> kept;
  for (const auto& [cell, n] : cells) {
    total.first += n.first;
    total.second += n.second;
    if (n.first + n.second >= 20) {
      kept.push_back(n);
    } else {
      rare.first += n.first;
      rare.second += n.second;
    }
  }
  if (rare.first + rare.second >= 20) kept.push_back(rare);
  ChiSquare out;
  const double ratio = std::sqrt(total.second / total.first);
  for (const auto& [x, y] : kept) out.statistic += std::pow(ratio * x - y / ratio, 2) / (x + y);
  out.freedom = static_cast<double>(kept.size()) - 1;
  return out;
}

// Counts within a sample are not quite independent, hence a bound a little above the 1e-6 tail (4.75).
constexpr double kBound = 5.2;

struct Deviates {
  double transitions, lengths, starts;
  double largest() const { return std::max({transitions, lengths, starts}); }
};

Deviates compare(const Counts& a, const Counts& b) {
  const auto deviate = [](const ChiSquare& c) { return c.freedom < 1 ? 0.0 : c.deviate(); };
  return {deviate(compare(a.transitions, b.transitions)), deviate(compare(a.lengths, b.lengths)),
          deviate(compare(a.starts, b.starts))};
}

struct Case {
  const char* name;
  std::shared_ptr<const Automaton> automaton;
  int length;
  size_t samples;
};

std::vector<Case> cases() {
  return {
      {"five_states", build_automaton({.vocab = 5, .ambiguities = 0, .depth = 1}), 12, 40000},
      {"short_length", build_automaton({.vocab = 6, .ambiguities = 2, .depth = 3}), 5, 60000},
      {"ambiguous", build_automaton({.vocab = 9, .ambiguities = 8, .depth = 12}), 30, 20000},
      {"task_sweep", build_automaton({.vocab = 21, .ambiguities = 20, .depth = 20}), 100, 10000},
      {"paper", build_automaton({}), 200, 4000},
      {"unequal",
       test::make_automaton(
           3, {0, 2}, {{0, 0, 0.05}, {0, 1, 0.9}, {0, 3, 0.05}, {1, 0, 0.3}, {1, 2, 0.7}, {2, 1, 0.99}, {2, 3, 0.01}}),
       15, 40000},
      {"one_tight_string",
       test::make_automaton(3, {0, 1}, {{0, 1, 0.5}, {0, 2, 0.5}, {1, 2, 1}, {2, 0, 0.5}, {2, 3, 0.5}}), 4, 40000},
  };
}

class SameLaw : public testing::TestWithParam<size_t> {};

TEST_P(SameLaw, DirectAndRejectionSamplersAgree) {
  const Case c = cases()[GetParam()];
  const auto reference = Sampler(c.automaton, {11, c.length, Stream::reference}).block(Split::valid, 0, c.samples, 0);
  const auto direct = Sampler(c.automaton, {11, c.length, Stream::direct}).block(Split::valid, 0, c.samples, 0);
  const Deviates d = compare(count(*c.automaton, reference), count(*c.automaton, direct));
  EXPECT_LT(d.transitions, kBound) << c.name;
  EXPECT_LT(d.lengths, kBound) << c.name;
  EXPECT_LT(d.starts, kBound) << c.name;
}

// The comparison detects strings conditioned on one element more or less, and strings without the condition.
TEST(SameLaw, DetectsOffByOneLengthCondition) {
  const auto a = build_automaton({.vocab = 9, .ambiguities = 8, .depth = 12});
  const int length = 30;
  const auto reference = Sampler(a, {11, length, Stream::reference}).block(Split::valid, 0, 20000, 0);
  const Counts right = count(*a, reference);
  for (const int wrong : {29, 31}) {
    const SampleBlock longer = Sampler(a, {12, wrong, Stream::direct}).block(Split::valid, 0, 20000, 0);
    EXPECT_GT(compare(right, count(*a, longer)).lengths, kBound) << wrong;
  }
}

TEST(SameLaw, DetectsUnconditionedSteps) {
  const auto a = build_automaton({.vocab = 9, .ambiguities = 8, .depth = 12});
  const int length = 12;
  const auto reference = Sampler(a, {11, length, Stream::reference}).block(Split::valid, 0, 20000, 0);
  const ReachTable far(*a, 400);
  // With hundreds of steps left, conditioning does nothing: these are the automaton's own strings, cut.
  SampleBlock free{0, length, {}};
  std::vector<uint16_t> row(400);
  const DirectWalk walk(*a, far, 400);
  for (uint64_t i = 0; i < 20000; ++i) {
    walk.run(
        i, 1,
        [](uint64_t n) {
          return Pcg64({13, 4, n});
        },
        row.data());
    free.states.insert(free.states.end(), row.begin(), row.begin() + length);
  }
  const Deviates d = compare(count(*a, reference), count(*a, free));
  EXPECT_GT(d.transitions, kBound);
  EXPECT_GT(d.starts, kBound);
}

// Exact frequencies of all strings of a small automaton.
TEST(SameLaw, DirectStringsHaveExactProbabilities) {
  const auto a = test::make_automaton(2, {0, 1}, {{0, 0, 0.25}, {0, 1, 0.25}, {0, 2, 0.5}, {1, 0, 0.5}, {1, 2, 0.5}});
  const int length = 5;
  std::map<std::vector<uint16_t>, double> law;
  double total = 0;
  const auto extend = [&](const auto& self, std::vector<uint16_t> string, double p) -> void {
    if (static_cast<int>(string.size()) > length) return;
    if (string.back() == 2) {
      law[string] = p;
      total += p;
      return;
    }
    const int s = string.back();
    for (int e = a->row[s]; e < a->row[s + 1]; ++e) {
      auto next = string;
      next.push_back(static_cast<uint16_t>(a->dst[e]));
      self(self, next, p * a->prob[e]);
    }
  };
  extend(extend, {0}, 0.5);
  extend(extend, {1}, 0.5);
  const size_t samples = 200000;
  const SampleBlock block = Sampler(a, {1, length, Stream::direct}).block(Split::train, 0, samples, 0);
  std::map<std::vector<uint16_t>, double> seen;
  for (size_t i = 0; i < samples; ++i) {
    const uint16_t* s = block.sample(i);
    ++seen[{s, std::find(s, s + length, 2) + 1}];
  }
  ChiSquare chi;
  for (const auto& [string, p] : law) {
    const double expected = p / total * static_cast<double>(samples);
    chi.statistic += std::pow(seen[string] - expected, 2) / expected;
    ++chi.freedom;
  }
  --chi.freedom;
  EXPECT_EQ(seen.size(), law.size());
  EXPECT_LT(chi.deviate(), 4.75);
}

INSTANTIATE_TEST_SUITE_P(Automata, SameLaw, testing::Range<size_t>(0, 7),
                         [](const auto& each) { return std::string(cases()[each.param].name); });

}  // namespace
}  // namespace sb
