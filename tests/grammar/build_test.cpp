#include "grammar/build.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "../base/expect.h"
#include "base/error.h"
#include "grammar/check.h"

namespace sb {
namespace {

// The line of the rejection; empty if the grammar is built.
std::string rejection(const GrammarConfig& config) {
  return error_line([&] { build_automaton(config); });
}

void expect_rejected(const GrammarConfig& config, const std::string& where, const std::string& word) {
  const std::string line = rejection(config);
  EXPECT_TRUE(line.starts_with("[" + where + "]")) << line;
  EXPECT_TRUE(has(line, word));
}

TEST(BuildAutomaton, NamesInvalidParameter) {
  expect_rejected({.vocab = 1, .ambiguities = 0, .depth = 1}, "grammar.vocab", "at least 2");
  expect_rejected({.vocab = -5, .ambiguities = 0, .depth = 1}, "grammar.vocab", "-5");
  expect_rejected({.vocab = 6, .ambiguities = 6, .depth = 2}, "grammar.ambiguities", "vocab - 1 (5)");
  expect_rejected({.vocab = 6, .ambiguities = -1, .depth = 2}, "grammar.ambiguities", "-1");
  expect_rejected({.vocab = 6, .ambiguities = 2, .depth = 0}, "grammar.depth", "at least 1");
  expect_rejected({.vocab = 6, .ambiguities = 2, .depth = 3, .density = 0}, "grammar.density", "above 0");
  expect_rejected({.vocab = 6, .ambiguities = 2, .depth = 3, .density = 0.5}, "grammar.density", "1/3");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_rejected({.vocab = 6, .ambiguities = 2, .depth = 3, .density = nan}, "grammar.density", "nan");
  const double infinity = std::numeric_limits<double>::infinity();
  expect_rejected({.vocab = 6, .ambiguities = 2, .depth = 3, .density = infinity}, "grammar.density", "inf");
  expect_rejected({.vocab = 6, .ambiguities = 2, .depth = 3, .start_states = 0}, "grammar.start_states", "1 to 9");
  expect_rejected({.vocab = 4, .ambiguities = 0, .depth = 1, .start_states = 4}, "grammar.start_states", "1 to 3");
}

TEST(BuildAutomaton, RejectsTooManyStatesOrTransitions) {
  expect_rejected({.vocab = 41, .ambiguities = 40, .depth = 100000}, "grammar", "too many states");
  const int largest = std::numeric_limits<int>::max();
  expect_rejected({.vocab = largest, .ambiguities = largest - 1, .depth = largest}, "grammar", "too many states");
  expect_rejected({.vocab = 60000, .ambiguities = 0, .depth = 1}, "grammar.density", "too many transitions");
}

TEST(BuildAutomaton, RejectsHopelessParametersWithoutTrying) {
  expect_rejected({.vocab = 7, .ambiguities = 6, .depth = 1200}, "grammar", "states without exit");
  expect_rejected({.vocab = 41, .ambiguities = 0, .depth = 1, .density = 1e-12}, "grammar",
                  "expected a higher density");
  expect_rejected({.vocab = 2, .ambiguities = 1, .depth = 60000}, "grammar", "states without exit");
  // One state whose only exit must be '#', which an edge of density 1e-17 never is.
  expect_rejected({.vocab = 2, .ambiguities = 0, .depth = 1, .density = 1e-17, .start_states = 1}, "grammar",
                  "density");
}

TEST(BuildAutomaton, GivesUpAfterBoundedAttempts) {
  const std::string line = rejection({.vocab = 16, .ambiguities = 3, .depth = 8, .density = 0.02});
  EXPECT_TRUE(has(line, "attempts"));
}

TEST(BuildAutomaton, NamesLettersPast52) {
  EXPECT_EQ(letter_name(0), "A");
  EXPECT_EQ(letter_name(25), "Z");
  EXPECT_EQ(letter_name(26), "a");
  EXPECT_EQ(letter_name(51), "z");
  EXPECT_EQ(letter_name(52), "AA");
  EXPECT_EQ(letter_name(103), "Az");
  EXPECT_EQ(letter_name(104), "BA");
  EXPECT_EQ(letter_name(52 + 52 * 52), "AAA");
  std::set<std::string> names;
  for (int i = 0; i < 65536; ++i) names.insert(letter_name(i));
  EXPECT_EQ(names.size(), 65536U);
}

TEST(BuildAutomaton, GivesDistinctNamesPast52Letters) {
  const auto a = build_automaton({.vocab = 60, .ambiguities = 52, .depth = 2});
  EXPECT_EQ(a->states(), 7 + 52 * 2 + 1);
  EXPECT_EQ(a->vocab, 60);
  EXPECT_EQ(*std::max_element(a->symbol.begin(), a->symbol.end()), 59);
  EXPECT_EQ(std::set<std::string>(a->names.begin(), a->names.end()).size(), a->names.size());
}

TEST(BuildAutomaton, AcceptsDepthsPast100) {
  const auto a = build_automaton({.vocab = 31, .ambiguities = 30, .depth = 130});
  EXPECT_EQ(a->states(), 30 * 130 + 1);
  EXPECT_NO_THROW(check(*a));
}

TEST(BuildAutomaton, GivesAtMostOneSuccessorPerSymbol) {
  const auto a = build_automaton({.vocab = 16, .ambiguities = 15, .depth = 16, .seed = 7});
  for (int s = 0; s < a->states(); ++s) {
    std::set<int32_t> symbols;
    for (int e = a->row[s]; e < a->row[s + 1]; ++e) EXPECT_TRUE(symbols.insert(a->symbol[a->dst[e]]).second);
  }
}

TEST(BuildAutomaton, FullDensityConnectsEveryStateToEverySymbol) {
  const auto a = build_automaton({.vocab = 5, .ambiguities = 0, .depth = 1, .density = 1, .start_states = 1});
  EXPECT_EQ(a->transitions(), 4 * 5);
}

}  // namespace
}  // namespace sb
