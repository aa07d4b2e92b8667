#include "findings/claims.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "../runs/model_rules.h"

namespace sb::test {
namespace {

const std::string shipped_claims = SB_SOURCE_DIR "/configs/experiments/claims.toml";

TEST(ShippedClaims, AreThePapersWithoutThoseWithdrawnAndFaultsBesides) {
  const Claims claims = read_claims(shipped_claims);
  std::set<int> numbers;
  for (const auto& claim : claims.claims) {
    EXPECT_TRUE(claim.number == 0 || numbers.insert(claim.number).second) << claim.id;
    EXPECT_FALSE(claim.comparisons.empty()) << claim.id;
  }
  EXPECT_EQ(numbers, (std::set<int>{1, 3, 4, 5, 7, 8, 9}));
  EXPECT_EQ(claims.find("mixing_generalises")->comparisons.size(), 2U * 5 + 3);
  for (const char* name : {"quick", "small", "paper"}) EXPECT_NE(claims.scale(name), nullptr) << name;
}

TEST(ShippedClaims, EveryModelAndSwitchOfTheirArmsExists) {
  for (const auto& claim : read_claims(shipped_claims).claims)
    for (const auto& comparison : claim.comparisons)
      for (const auto* arm : {&comparison.a, &comparison.b})
        for (const auto& model : *arm) {
          ASSERT_TRUE(zoo().contains(model.model)) << claim.id << ": " << model.model;
          const auto& switches = zoo().at(model.model);
          for (const auto& [key, value] : model.switches)
            EXPECT_NE(std::find(switches.begin(), switches.end(), key), switches.end()) << claim.id << ": " << key;
        }
}

TEST(ShippedClaims, AreThoseTheExperimentsName) {
  const Claims claims = read_claims(shipped_claims);
  for (const auto& entry : std::filesystem::directory_iterator(SB_SOURCE_DIR "/configs/experiments")) {
    if (entry.path().extension() != ".toml") continue;
    ExperimentClaims experiment;
    try {
      experiment = read_experiment_claims(entry.path().string());
    } catch (const Error&) {
      continue;  // another kind of file
    }
    EXPECT_FALSE(experiment.claims.empty()) << entry.path();
    for (const auto& id : experiment.claims) EXPECT_NE(claims.find(id), nullptr) << entry.path() << ": " << id;
  }
}

TEST(ClaimsFile, ListsAreEveryCombination) {
  const Claims claims = parse_claims(R"(
[[scale]]
name = "s"
[[claim]]
id = "c"
sentence = "x"
margin = 0.02
comparisons = [
  {a = ["gla", "mamba"], b = ["mamba2", {model = "gla", mlp = 2, complementary = true, quirks = ["delta_bf16"]}], task = [1, 3]},
  {direction = "below", margin = 1, a = {mean = ["gla", "mamba"]}},
])",
                                     "c.toml");
  const auto& all = claims.claims.front().comparisons;
  ASSERT_EQ(all.size(), 9U);
  EXPECT_EQ(all[0].name(), "task 1: gla - mamba2");
  EXPECT_EQ(all[3].name(), "task 3: gla - gla, complementary on, mlp 2, quirk delta_bf16");
  EXPECT_TRUE(all[7].above);
  EXPECT_EQ(all[7].margin, .02);
  EXPECT_EQ(all[8].name(), "task 1: mean of gla; mamba");
  EXPECT_FALSE(all[8].above);
  EXPECT_EQ(all[8].margin, 1);
}

TEST(ClaimsFile, BadOnesGetOneLineWithTheirPlace) {
  const std::string scale = "[[scale]]\nname = 's'\n";
  const auto claim = [&](const std::string& rest) { return scale + "[[claim]]\nid = 'c'\nsentence = 'x'\n" + rest; };
  for (const std::string& text : std::vector<std::string>{
           "",
           scale,
           claim(""),
           claim("comparisons = []"),
           claim("comparisons = [1]"),
           claim("comparisons = [{}]"),
           claim("comparisons = [{b = 'gla'}]"),
           claim("comparisons = [{a = 1}]"),
           claim("comparisons = [{a = {mlp = 1}}]"),
           claim("comparisons = [{a = 'gla', b = 'gla'}]"),
           claim("comparisons = [{a = 'gla', task = 5}]"),
           claim("comparisons = [{a = 'gla', task = 'one'}]"),
           claim("comparisons = [{a = 'gla', taks = 1}]"),
           claim("comparisons = [{a = 'gla', gaps = [10]}]"),
           claim("comparisons = [{a = 'gla', over = 'params'}]"),
           claim("comparisons = [{a = 'gla', match = 0.5}]"),
           claim("comparisons = [{a = {mean = ['gla', 'mamba']}, b = 'gru'}]"),
           claim("comparisons = [{a = 'gru', b = {mean = ['gla', 'mamba']}}]"),
           claim("comparisons = [{a = 'gla', statistic = 'slope'}]"),
           claim("comparisons = [{a = 'gla', statistic = 'slope', over = 'task.nonsense'}]"),
           claim("comparisons = [{a = 'gla', statistic = 'slope', over = 'params', b = 'chance'}]"),
           claim("comparisons = [{a = 'gla', statistic = 'retention'}]"),
           claim("comparisons = [{a = 'gla', statistic = 'retention', gaps = [0]}]"),
           claim("comparisons = [{a = 'gla', statistic = 'rank_correlation', over = 'params'}]"),
           claim("comparisons = [{a = 'gla', statistic = 'median'}]"),
           claim("comparisons = [{a = 'gla', keys = {task.gap_max = -1}}]"),
           claim("comparisons = [{a = 'gla', keys = {task.gapmax = 1}}]"),
           claim("comparisons = [{a = 'gla', free = ['task.gapmax']}]"),
           claim("comparisons = [{a = {model = 'gla', quirks = ['none']}}]"),
           claim("comparisons = [{a = 'gla'}]\nmargin = nan"),
           claim("comparisons = [{a = 'gla'}]\ndirection = 'sideways'"),
           claim("comparisons = [{a = 'gla'}]\nnumber = -1"),
           claim("comparisons = [{a = 'gla'}]\nwhy = 'x'"),
           scale + "[[claim]]\nid = 'C d'\nsentence = 'x'\ncomparisons = [{a = 'gla'}]",
           claim("comparisons = [{a = 'gla'}]\n[[claim]]\nid = 'c'\nsentence = 'x'\ncomparisons = [{a = 'gla'}]"),
           claim("comparisons = [{a = 'gla'}]\n[[scale]]\nname = 's'"),
           claim("comparisons = [{a = 'gla'}]\n[[scale]]\nname = 't'\nparams = [2, 1]"),
           claim("comparisons = [{a = 'gla'}]\n[[scale]]\nname = 't'\nparams = 3"),
           claim("comparisons = [{a = 'gla'}]\n[[task]]\nnumber = 9"),
           claim("comparisons = [{a = 'gla'}]\n[[withheld]]\nmodel = 'gla'"),
           claim("comparisons = [{a = 'gla'}]\n[[withheld]]\nmodel = 'gla'\nreason = 'x'\n"
                 "[[withheld]]\nmodel = 'gla'\nreason = 'x'"),
           claim("comparisons = [{a = 'gla'}]\n[more]\nx = 1"),
           "claim = 3",
           "[[claim]",
       }) {
    const std::string line = error_line([&] { parse_claims(text, "c.toml"); });
    EXPECT_TRUE(line.starts_with("[")) << text << "\n" << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    EXPECT_NE(line.find("c.toml"), std::string::npos) << line;
  }
  EXPECT_EQ(error_line([&] { parse_claims(claim("comparisons = [{a = 'gla'}]"), "c.toml"); }), "");
}

TEST(ExperimentFile, TellsItsClaimsAndNothingElseIsAsked) {
  const auto one =
      parse_experiment_claims("[experiment]\ntitle = 'T'\nclaims = ['a', 'b']\n[grid]\nx = [1]\n", "dir/main.toml");
  EXPECT_EQ(one.name, "main");
  EXPECT_EQ(one.claims, (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(error_line([] { parse_experiment_claims("[suite]\nname = 'x'\n", "s.toml"); }), "");
  EXPECT_NE(error_line([] { parse_experiment_claims("[experiment]\nclaims = 3\n", "s.toml"); }), "");
}

}  // namespace
}  // namespace sb::test
