#include "grammar/draw.h"

#include <gtest/gtest.h>

#include <set>

#include "../base/expect.h"
#include "grammar/build.h"

namespace sb {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

std::shared_ptr<const Automaton> grammar(int vocab, int ambiguities, int depth) {
  GrammarConfig config;
  config.vocab = vocab;
  config.ambiguities = ambiguities;
  config.depth = depth;
  return build_automaton(config);
}

TEST(Svg, DrawsEveryStateAndEdgeOfSmallAutomaton) {
  const auto a = grammar(6, 2, 3);
  const std::string svg = to_svg(*a);
  EXPECT_EQ(count(svg, "<circle"), static_cast<size_t>(a->states()) + 1) << "'#' has two rings";
  EXPECT_EQ(count(svg, "<g><title>"), static_cast<size_t>(a->transitions()));
  for (const auto& name : a->names) EXPECT_TRUE(has(svg, ">" + name + "</text>")) << name;
}

TEST(Svg, EscapesNames) {
  Automaton a = *grammar(6, 2, 3);
  a.names[0] = "<a&\"b>";
  const std::string svg = to_svg(a);
  EXPECT_TRUE(lacks(svg, "<a&"));
  EXPECT_TRUE(has(svg, "&lt;a&amp;&quot;b&gt;"));
  EXPECT_EQ(count(svg, "<g>"), count(svg, "</g>"));
  EXPECT_EQ(count(svg, "nan"), 0U);
}

TEST(Svg, DrawsLargeAutomatonAsAdjacencyMatrix) {
  const auto a = grammar(41, 40, 40);
  const std::string svg = to_svg(*a);
  EXPECT_EQ(count(svg, "<circle"), 0U);
  EXPECT_EQ(count(svg, "start state "), a->start.size());
  EXPECT_LT(svg.size(), 2'000'000U);
}

TEST(Svg, GivesEverySymbolItsOwnColour) {
  const auto a = grammar(13, 0, 1);
  const std::string dot = to_dot(*a);
  std::set<std::string> colours;
  for (size_t at = dot.find("fillcolor=\""); at != std::string::npos; at = dot.find("fillcolor=\"", at + 1)) {
    colours.insert(dot.substr(at + 11, 7));
  }
  EXPECT_EQ(colours.size(), 13U);
}

TEST(Dot, NamesEveryStateEdgeAndStart) {
  const auto a = grammar(6, 2, 3);
  const std::string dot = to_dot(*a);
  EXPECT_EQ(count(dot, " -> "), static_cast<size_t>(a->transitions()) + a->start.size());
  EXPECT_EQ(count(dot, "[label="), static_cast<size_t>(a->states()));
  EXPECT_EQ(count(dot, "doublecircle"), 1U);
  Automaton awkward = *a;
  awkward.names[0] = "a\"b\\";
  EXPECT_TRUE(has(to_dot(awkward), "\"a\\\"b\\\\\""));
}

}  // namespace
}  // namespace sb
