#include "grammar/check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "../base/expect.h"
#include "automata.h"
#include "base/error.h"
#include "grammar/components.h"

namespace sb {
namespace {

std::string complaint(const std::function<void(Automaton&)>& spoil) {
  auto a =
      test::make_automaton(3, {0, 1}, {{0, 1, 0.5}, {0, 3, 0.5}, {1, 2, 1}, {2, 0, 0.25}, {2, 2, 0.5}, {2, 3, 0.25}});
  EXPECT_NO_THROW(check(*a));
  spoil(*a);
  return error_line([&] { check(*a); });
}

void expect_complaint(const std::string& word, const std::function<void(Automaton&)>& spoil) {
  const std::string line = complaint(spoil);
  EXPECT_TRUE(has(line, word));
}

TEST(CheckAutomaton, NamesInvalidField) {
  expect_complaint("number of states", [](Automaton& a) { a.names = {"#"}; });
  expect_complaint("symbols, ids and rows", [](Automaton& a) { a.symbol.pop_back(); });
  expect_complaint("end state", [](Automaton& a) { a.end = 4; });
  expect_complaint("end state", [](Automaton& a) { a.end = -1; });
  expect_complaint("class of state B", [](Automaton& a) { a.symbol[1] = 4; });
  expect_complaint("class of state A", [](Automaton& a) { a.symbol[0] = 0; });
  expect_complaint("class of state #", [](Automaton& a) { a.symbol[3] = 1; });
  expect_complaint("id of state B", [](Automaton& a) { a.id[1] = 1; });
  expect_complaint("id of state C", [](Automaton& a) { a.id[2] = 99; });
  expect_complaint("id of state A", [](Automaton& a) { std::swap(a.id[0], a.id[3]); });
  expect_complaint("disagree", [](Automaton& a) { a.prob.pop_back(); });
  expect_complaint("out of order", [](Automaton& a) { a.row[1] = 6, a.row[2] = 3; });
  expect_complaint("edges out of '#'", [](Automaton& a) { a.row[3] = 5, a.prob[3] = 0.5; });
  expect_complaint("state B has no exit", [](Automaton& a) { a.row[2] = 2; });
  expect_complaint("to state number 9", [](Automaton& a) { a.dst[0] = 9; });
  expect_complaint("to state number -1", [](Automaton& a) { a.dst[0] = -1; });
  expect_complaint("ascending", [](Automaton& a) { std::swap(a.dst[0], a.dst[1]); });
  expect_complaint("probability of A to B", [](Automaton& a) { a.prob[0] = 0; });
  expect_complaint("probability of A to B", [](Automaton& a) { a.prob[0] = std::numeric_limits<double>::quiet_NaN(); });
  expect_complaint("sum of 1", [](Automaton& a) { a.prob[0] = 0.4; });
  expect_complaint("no start state", [](Automaton& a) { a.start.clear(); });
  expect_complaint("start state number 3", [](Automaton& a) { a.start[0] = 3; });
  expect_complaint("start state number 1", [](Automaton& a) { a.start[0] = 1; });
  expect_complaint("start state number -2", [](Automaton& a) { a.start[1] = -2; });
  expect_complaint("state B has no path to '#'", [](Automaton& a) { a.dst[2] = 1; });
}

TEST(StrongComponents, SeparateUnreachableStates) {
  // C leads to A but nothing leads to C; A, B and '#' come back to each other through the start state.
  const auto a = test::make_automaton(3, {0}, {{0, 1, 1}, {1, 3, 1}, {2, 0, 0.5}, {2, 2, 0.5}});
  const auto components = strong_components(*a);
  ASSERT_EQ(components.size(), 2U);
  EXPECT_EQ(components[0], (std::vector<int32_t>{0, 1, 3}));
  EXPECT_EQ(components[1], (std::vector<int32_t>{2}));
}

}  // namespace
}  // namespace sb
