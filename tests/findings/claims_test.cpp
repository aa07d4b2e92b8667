#include "findings/claims.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "../base/expect.h"
#include "../config/model_rules.h"
#include "base/file.h"
#include "findings/protocol.h"
#include "findings/verdict.h"
#include "report/folder.h"
#include "suites/experiment.h"

namespace sb::test {
namespace {

const std::string shipped_claims = SB_SOURCE_DIR "/configs/experiments/claims.toml";

TEST(ShippedClaims, AreElevenOfPaperAndTwentyNineOfOurs) {
  const Claims claims = read_claims(shipped_claims);
  std::set<int> numbers;
  for (const auto& claim : claims.claims) {
    EXPECT_TRUE(claim.number == 0 || numbers.insert(claim.number).second) << claim.id;
    EXPECT_FALSE(claim.title.empty()) << claim.id;
    EXPECT_TRUE(std::any_of(claim.comparisons.begin(), claim.comparisons.end(), [](const Comparison& one) {
      return !one.reported;
    })) << claim.id;
  }
  EXPECT_EQ(numbers, (std::set<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(claims.claims.size(), numbers.size() + 29);
  EXPECT_EQ(claims.find("attention_leads")->comparisons.size(), 6U * 2 + 6);
  EXPECT_EQ(claims.deviations.size(), 9U);
  EXPECT_EQ(claims.choice_seed, 11U);
  for (const char* name : {"quick", "small", "paper"}) EXPECT_NE(claims.scale(name), nullptr) << name;
  EXPECT_NE(claims.scale(claims.choice_scale), nullptr);
  for (const auto& table : claims.published) EXPECT_NE(table.source.find("arXiv"), std::string::npos) << table.id;
}

// In one claim, a name stands for one network: the sizes of two experiments must not mix.
TEST(ShippedClaims, GiveEveryArmOneSizeInTheShippedResults) {
  const Rows rows = read_all_rows({SB_SOURCE_DIR "/results"});
  const Claims claims = read_claims(shipped_claims);
  size_t arms = 0;
  for (const auto& claim : claims.claims)
    for (const auto& scale : claims.scales) {
      std::map<std::pair<std::string, std::string>, std::set<int64_t>> sizes;  // by place and name of the arm
      for (const auto& one : judge(rows, claims, claim, scale, corrected_protocol).comparisons) {
        const Comparison& c = *one.comparison;
        if (c.b.empty() || c.over == "params" || c.statistic == Statistic::drop) continue;
        for (const auto& [arm, figures] : {std::pair(c.a, one.figures.a), std::pair(c.b, one.figures.b)})
          sizes[{c.place_text(), arm_text(arm)}].insert(figures.params.begin(), figures.params.end());
      }
      for (const auto& [arm, each] : sizes) {
        EXPECT_LE(each.size(), 1U) << claim.id << " at " << scale.name << ": " << arm.first << ": " << arm.second;
        arms += !each.empty();
      }
    }
  EXPECT_GT(arms, 100U);
}

TEST(ShippedClaims, UseExistingModelsAndSwitches) {
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

TEST(ShippedClaims, MatchClaimsOfExperiments) {
  const Claims claims = read_claims(shipped_claims);
  for (const auto& experiment : read_catalogue(SB_SOURCE_DIR "/configs")) {
    EXPECT_FALSE(experiment.claims.empty()) << experiment.path;
    for (const auto& id : experiment.claims) EXPECT_NE(claims.find(id), nullptr) << experiment.path << ": " << id;
  }
}

// The example and the list of all blocks.
TEST(ShippedClaims, DocumentedFilesAreValid) {
  const std::string page = read_file(SB_SOURCE_DIR "/docs/claims.md", 1 << 20), fence = "```toml\n";
  size_t files = 0;
  for (size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    EXPECT_EQ(error_line([&] { parse_claims(page.substr(begin, page.find("```", begin) - begin), "claims.md"); }), "");
    ++files;
  }
  EXPECT_EQ(files, 2U);
}

TEST(ClaimsFile, ExpandsListsToEveryCombination) {
  const Claims claims = parse_claims(R"(
[[scale]]
name = "s"
[[claim]]
id = "c"
title = "t"
sentence = "x"
delta = 0.02
comparisons = [
  {a = ["gla", "mamba"], b = ["mamba2", {model = "gla", mlp = 2, complementary = true}], task = [1, 3]},
  {asks = "at_most", delta = 0.5, a = {mean = ["gla", "mamba"]}, reported = true},
  {a = {model = "gla", keys = {model.dropout = 0.2}}, b = {model = "gla", keys = {model.dropout = 0}}},
  {statistic = "drop", a = "gla", b = "mamba", from = 2, task = 3, reference = 0.1},
])",
                                     "c.toml");
  const auto& all = claims.claims.front().comparisons;
  ASSERT_EQ(all.size(), 11U);
  EXPECT_EQ(all[0].name(), "task 1: GLA − Mamba2");
  EXPECT_EQ(all[3].name(), "task 3: GLA − GLA, complementary on, mlp 2");
  EXPECT_EQ(all[7].asks, Asks::above);
  EXPECT_EQ(all[7].delta, .02);
  EXPECT_FALSE(all[7].reported);
  EXPECT_EQ(all[8].name(), "task 1: mean of GLA; Mamba");
  EXPECT_EQ(all[8].asks, Asks::at_most);
  EXPECT_EQ(all[8].delta, .5);
  EXPECT_TRUE(all[8].reported);
  EXPECT_EQ(all[9].name(), "task 1: GLA, dropout 0.2 − GLA, dropout 0.0");
  EXPECT_EQ(all[10].name(), "task 2 to 3, drop: GLA − Mamba");
  EXPECT_EQ(all[10].reference, .1);
}

TEST(ClaimsFile, ComparesOnKindsAtPointsOfTheirTestAxis) {
  const Claims claims = parse_claims(R"(
[[scale]]
name = "s"
[[claim]]
id = "c"
title = "t"
sentence = "x"
comparisons = [
  {a = "gru", b = "gla", task = "word_problem", keys = {task.machine = "a5"}, at = [32, 64], best = 3},
  {a = "gru", task = "dyck"},
  {statistic = "retention", a = "gru", task = "flip_flop", at = [0, 98]},
  {statistic = "excess_error", a = "gru", task = "tracking", keys = {task.missing = 60}},
  {statistic = "task_order", a = {mean = ["gru", "gla", "mamba"]}, task = 4, gaps = [20], with = {task = "text", at = [1, 2], statistic = "retention"}},
])",
                                     "c.toml");
  const auto& all = claims.claims.front().comparisons;
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].name(), "word problem, machine a5, length 32, 64, best of 3 runs: GRU − GLA");
  EXPECT_EQ(all[0].keys, (ConfigMap{{"task.machine", "\"a5\""}}));
  EXPECT_EQ(all[1].name(), "dyck: GRU");
  EXPECT_EQ(all[2].name(), "flip flop, ignored 0, 98, retention: GRU");
  EXPECT_EQ(all[3].name(), "tracking, missing 60, excess error: GRU");
  EXPECT_EQ(all[4].name(), "task 4, gap 20: order of 3 models and text, distance 1, 2, retention");
}

TEST(ClaimsFile, KeysOfAComparisonOverrideThoseOfItsClaim) {
  const Claims claims = parse_claims(R"(
[[scale]]
name = "s"
[[scale]]
name = "t"
[[claim]]
id = "c"
title = "t"
sentence = "x"
keys = {task.length = 50, task.depth = 3}
at_scale = {t = {task.length = 80, task.depth = 5}}
comparisons = [{keys = {task.depth = 4}, a = "gru", task = "dyck"}])",
                                     "c.toml");
  const Comparison& one = claims.claims.front().comparisons.front();
  EXPECT_EQ(one.keys_at("s"), (ConfigMap{{"task.depth", "4"}, {"task.length", "50"}}));
  EXPECT_EQ(one.keys_at("t"), (ConfigMap{{"task.depth", "4"}, {"task.length", "80"}}));
  EXPECT_EQ(one.name(), "dyck, depth 4: GRU");
}

// `sensor_noise` is a key of signals and of tracking, with different ranges; `machine` is a key of word_problem only.
TEST(ClaimsFile, LooksUpKeysAndPointsByKind) {
  const auto line = [](const std::string& comparison) {
    return error_line([&] {
      parse_claims(
          "[[scale]]\nname = 's'\n[[claim]]\nid = 'c'\ntitle = 't'\nsentence = 'x'\ncomparisons = [" + comparison + "]",
          "c.toml");
    });
  };
  EXPECT_EQ(line("{a = 'gla', task = 'signals', keys = {task.depth = 3}}"), "");
  EXPECT_NE(line("{a = 'gla', task = 'recall', keys = {task.depth = 3}}")
                .find("expected a key that tells runs of kind recall apart, got 'task.depth'"),
            std::string::npos);
  EXPECT_NE(line("{a = 'gla', task = 'dyck', keys = {task.gap_max = 3}}"), "") << "a key of gaps";
  EXPECT_NE(line("{a = 'gla', task = 'signals', keys = {task.sensor_noise = 0.005}}"), "");
  EXPECT_EQ(line("{statistic = 'excess_error', a = 'gla', task = 'tracking', keys = {task.sensor_noise = 0.005}}"), "");
  EXPECT_NE(line("{keys = {task.machine = 'a5'}, a = 'gla', task = 1}"), "");
  EXPECT_NE(line("{a = 'gla', task = 'text', keys = {task.file = 'x'}}"), "") << "runs have a digest, not a path";
  EXPECT_EQ(line("{at = [100], a = 'gla', task = 'flip_flop'}"), "");
  EXPECT_NE(line("{at = [101], a = 'gla', task = 'flip_flop'}"), "") << "percent";
  EXPECT_NE(line("{at = [0], a = 'gla', task = 'dyck'}"), "") << "depths begin at 1";
  EXPECT_EQ(line("{free = ['task.depth'], a = 'gla', task = 'dyck'}"), "");
  EXPECT_NE(line("{free = ['task.machine'], a = 'gla', task = 'dyck'}"), "");
}

TEST(ClaimsFile, ReportsErrorsInOneLineWithLocation) {
  const std::string scale = "[[scale]]\nname = 's'\n";
  const auto claim = [&](const std::string& rest) {
    return scale + "[[claim]]\nid = 'c'\ntitle = 't'\nsentence = 'x'\n" + rest;
  };
  const auto question = [&](const std::string& rest) {
    return claim("comparisons = [{a = 'gla'}]\n[[question]]\n" + rest);
  };
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
           claim("comparisons = [{a = 'gla', task = 'gaps'}]"),
           claim("comparisons = [{a = 'gla', task = 'dyck', gaps = [4]}]"),
           claim("comparisons = [{a = 'gla', task = 'dyck', statistic = 'gap_accuracy', gaps = [4]}]"),
           claim("comparisons = [{a = 'gla', task = 2, at = [4]}]"),
           claim("comparisons = [{a = 'gla', task = 'word_problem', keys = {task.machine = 'a6'}}]"),
           claim("comparisons = [{a = 'gla', best = 1}]"),
           claim("comparisons = [{a = 'gla', best = true}]"),
           claim("keys = {task.machine = 'a5'}\ncomparisons = [{a = 'gla'}]"),
           claim("keys = {train.lr = 4e-3}\ncomparisons = [{a = 'gla'}]"),
           claim("keys = {grammar.seed = 1}\ncomparisons = [{a = 'gla'}]"),
           claim("keys = 3\ncomparisons = [{a = 'gla'}]"),
           claim("at_scale = 3\ncomparisons = [{a = 'gla'}]"),
           claim("at_scale = {s = 3}\ncomparisons = [{a = 'gla'}]"),
           claim("at_scale = {other = {task.gap_max = 10}}\ncomparisons = [{a = 'gla'}]"),
           claim("comparisons = [{a = 'gla', scale = 'other'}]"),
           claim("comparisons = [{a = 'gla', scale = 1}]"),
           claim("exploratory = ['other']\ncomparisons = [{a = 'gla'}]"),
           claim("exploratory = 's'\ncomparisons = [{a = 'gla'}]"),
           claim("comparisons = [{a = 'gla', task = 'tracking'}]"),
           claim("comparisons = [{a = 'gla', task = 'dyck', statistic = 'excess_error'}]"),
           claim("comparisons = [{a = 'gla', statistic = 'excess_error'}]"),
           claim("comparisons = [{a = 'gla', task = 'tracking', statistic = 'excess_error', best = 3}]"),
           claim("comparisons = [{a = 'gla', task = 'dyck', statistic = 'retention'}]"),
           claim("comparisons = [{a = 'gla', task = 'dyck', statistic = 'drop', from = 1}]"),
           claim("comparisons = [{a = {mean = ['gla', 'mamba', 's4']}, statistic = 'task_order'}]"),
           claim("comparisons = [{a = {mean = ['gla', 'mamba', 's4']}, statistic = 'task_order', with = 'text'}]"),
           claim("comparisons = [{a = {mean = ['gla', 'mamba', 's4']}, statistic = 'task_order', with = {a = 'gla'}}]"),
           claim("comparisons = [{a = {mean = ['gla', 'mamba']}, statistic = 'task_order', with = {task = 'text'}}]"),
           claim("comparisons = [{a = 'gla', with = {task = 'text'}}]"),
           claim("comparisons = [{a = 'gla', taks = 1}]"),
           question("answers = [{claim = 'c', comparison = 'task 1: GLA'}]"),
           question("title = 't'"),
           question("title = 't'\nanswers = [{claim = 'c', comparison = 'task 2: GLA'}]"),
           question("title = 't'\nanswers = [{claim = 'd', comparison = 'task 1: GLA'}]"),
           question("title = 't'\nasks = 'above'\nanswers = [{claim = 'c', comparison = 'task 1: GLA'}]"),
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
           claim("comparisons = [{a = {model = 'gla', keys = {quirks.none = true}}}]"),
           claim("comparisons = [{a = {model = 'gla', keys = {model.dropout = 0.2}}, b = 'gla'}]"),
           claim("comparisons = [{a = 'gla'}]\ndelta = nan"),
           claim("comparisons = [{a = 'gla'}]\ndelta = -1"),
           claim("comparisons = [{a = 'gla'}]\ndelta = 1"),
           claim("comparisons = [{a = 'gla', task = 4, gaps = [20]}]"),
           claim("comparisons = [{a = 'gla'}]\nasks = 'sideways'"),
           claim("comparisons = [{a = 'gla', reported = 1}]"),
           claim("comparisons = [{a = 'gla', b = 'mamba', statistic = 'drop'}]"),
           claim("comparisons = [{a = 'gla', b = 'mamba', statistic = 'drop', from = 1, task = 1}]"),
           claim("comparisons = [{a = 'gla', statistic = 'drop', from = 1, task = 2}]"),
           claim("comparisons = [{a = 'gla', from = 1, task = 2}]"),
           claim("comparisons = [{a = 'gla', statistic = 'throughput'}]"),
           claim("comparisons = [{a = 'gla', published = 'p'}]"),
           claim(
               "comparisons = [{a = {mean = ['gla', 'mamba', 's4']}, statistic = 'published_order', published = 'p'}]"),
           claim("comparisons = [{a = 'gla'}]\n[[published]]\nid = 'p'\nsource = 'x'\nfigures = []"),
           claim("comparisons = [{a = 'gla'}]\n[[published]]\nid = 'p'\nsource = 'x'\nfigures = [{model = 'gla'}]"),
           claim("comparisons = [{a = 'gla'}]\n[[deviation]]\nid = 'd'\ntitle = 'x'"),
           claim("comparisons = [{a = 'gla'}]\n[[deviation]]\nid = 'd'\ntitle = 'x'\nsentence = 'x'\ncomparisons = []"),
           claim("comparisons = [{a = 'gla'}]\n[choices]\nseed = 1"),
           scale + "[[claim]]\nid = 'c'\nsentence = 'x'\ncomparisons = [{a = 'gla'}]",
           claim("comparisons = [{a = 'gla'}]\nnumber = -1"),
           claim("comparisons = [{a = 'gla'}]\nwhy = 'x'"),
           scale + "[[claim]]\nid = 'C d'\ntitle = 't'\nsentence = 'x'\ncomparisons = [{a = 'gla'}]",
           claim("comparisons = [{a = 'gla'}]\n[[claim]]\nid = 'c'\ntitle = 't'\nsentence = 'x'\ncomparisons = [{a = "
                 "'gla'}]"),
           claim("comparisons = [{a = 'gla'}]\n[[scale]]\nname = 's'"),
           claim("comparisons = [{a = 'gla'}]\n[[scale]]\nname = 't'\nparams = [2, 1]"),
           claim("comparisons = [{a = 'gla'}]\n[[scale]]\nname = 't'\nparams = 3"),
           claim("comparisons = [{a = 'gla'}]\n[[task]]\nnumber = 9"),
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
  const std::string asked = question("title = 't'\nanswers = [{claim = 'c', comparison = 'task 1: GLA'}]");
  EXPECT_EQ(error_line([&] { parse_claims(asked, "c.toml"); }), "");
}

}  // namespace
}  // namespace sb::test
