#include "grammar/figures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "automata.h"
#include "grammar/build.h"
#include "grammar/reach.h"

namespace sb {
namespace {

using test::make_automaton;

TEST(TopologicalEntropy, IsZeroForPeriodicCycle) {
  const auto a = make_automaton(3, {0}, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}});
  EXPECT_NEAR(topological_entropy(*a), 0, 1e-12);
}

TEST(TopologicalEntropy, IsLogarithmOfGoldenMeanForCoin) {
  // A goes to A or '#', '#' to A: the golden mean.
  EXPECT_NEAR(topological_entropy(*test::coin(0.3)), std::log((1 + std::sqrt(5.0)) / 2), 1e-12);
}

TEST(TopologicalEntropy, IncludesUnreachableStates) {
  // B and C reach each other and themselves (eigenvalue 2) but strings only see A.
  const auto a = make_automaton(3, {0}, {{0, 3, 1}, {1, 1, 0.5}, {1, 2, 0.5}, {2, 1, 0.4}, {2, 2, 0.4}, {2, 3, 0.2}});
  EXPECT_NEAR(topological_entropy(*a), std::log(2.0), 1e-12);
}

TEST(TopologicalEntropy, MatchesPaperForSeedTwo) {
  EXPECT_NEAR(topological_entropy(*build_automaton({.seed = 2})), 2.7655, 5e-5);
}

TEST(Figures, AreExactForCoin) {
  const Figures f = figures(*test::coin(0.75), 10);
  EXPECT_EQ(f.states, 2);
  EXPECT_EQ(f.transitions, 2);
  EXPECT_EQ(f.mean_out_degree, 2);
  EXPECT_EQ(f.ending_states, 1);
  EXPECT_EQ(f.start_symbols, 1);
  EXPECT_NEAR(f.mean_string_length, 5, 1e-12);  // A, a geometric number of times, then '#'
  EXPECT_NEAR(f.fit_probability, 1 - std::pow(0.75, 9), 1e-12);
  EXPECT_NEAR(f.mixing_rate, 0.25, 1e-9);  // eigenvalues 1 and -1/4
  EXPECT_NEAR(f.relaxation, -1 / std::log(0.25), 1e-8);
}

TEST(Figures, PeriodicChainNeverMixes) {
  const Figures f = figures(*make_automaton(3, {0}, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}}), 4);
  EXPECT_NEAR(f.mixing_rate, 1, 1e-12);
  EXPECT_GT(f.relaxation, 1e9);
  EXPECT_NEAR(f.mean_string_length, 4, 1e-12);
  EXPECT_EQ(f.fit_probability, 1);
}

TEST(Figures, ChainThatForgetsInTwoStepsHasZeroRelaxation) {
  // Eigenvalues 1, 0 and 0: trace and principal minors of the closed chain leave nothing else.
  const auto a = make_automaton(2, {0, 1}, {{0, 0, 0.5}, {0, 1, 0.5}, {1, 0, 0.25}, {1, 1, 0.5}, {1, 2, 0.25}});
  EXPECT_EQ(figures(*a, 9).mixing_rate, 0);
  EXPECT_EQ(figures(*a, 9).relaxation, 0);
}

TEST(Figures, StringsOfOneLengthNeverMix) {
  const auto a = make_automaton(2, {0, 1}, {{0, 2, 1}, {1, 2, 1}});
  EXPECT_NEAR(figures(*a, 2).mixing_rate, 1, 1e-12);
  EXPECT_NEAR(figures(*a, 2).mean_string_length, 2, 1e-12);
}

TEST(Figures, MatchReferenceForGrammarsOfPaper) {
  // Mean lengths and the share of strings of at most 200 elements, exact from the transition matrix.
  const double lengths[] = {1246, 1566, 1166, 1979};
  const double shares[] = {0.148, 0.120, 0.156, 0.095};
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Figures f = figures(*build_automaton({.seed = seed}), 200);
    EXPECT_EQ(f.states, 1601);
    EXPECT_NEAR(f.mean_string_length, lengths[seed - 1], 0.5) << seed;
    EXPECT_NEAR(f.fit_probability, shares[seed - 1], 5e-4) << seed;
    EXPECT_NEAR(f.mean_out_degree, 16, 0.5);
    EXPECT_GT(f.mixing_rate, 0.2);
    EXPECT_LT(f.mixing_rate, 0.5);
  }
}

TEST(Figures, MeanLengthMatchesSumOverTail) {
  // 401 states are iterated; the mean length also follows from P(longer than k) summed over k.
  const auto a = build_automaton({.vocab = 21, .ambiguities = 20, .depth = 20});
  double mean = 0;
  std::vector<double> now(a->names.size(), 0.0), next(now.size());
  now[a->end] = 1;
  for (int k = 0; k < 200000; ++k) {
    double short_of = 0;
    for (const int32_t s : a->start) short_of += 1 - now[s];
    mean += short_of / static_cast<double>(a->start.size());
    reach_step(*a, now.data(), next.data());
    std::swap(now, next);
  }
  EXPECT_NEAR(figures(*a, 200).mean_string_length, 1 + mean, 1e-6 * mean);
}

}  // namespace
}  // namespace sb
