#include "suites/suite.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "../config/model_rules.h"
#include "base/file.h"

namespace sb::test {
namespace {

Suite suite_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_suite(text, "suite.toml", overrides, rules());
}
std::string suite_fault(const std::string& text) {
  return error_line([&] { suite_of(text); });
}

TEST(Suite, ExpandsCombinationsWithFirstAxisSlowest) {
  const auto suite = suite_of("[suite]\nname = 'x'\n[grid]\ntask.number = [2, 1]\nmodel.name = ['gla', 'mamba']\n");
  EXPECT_EQ(suite.name, "x");
  std::vector<std::pair<int, std::string>> order;
  for (const auto& run : suite.runs) order.emplace_back(run.values.task.task.number, run.values.model.name);
  EXPECT_EQ(order, (std::vector<std::pair<int, std::string>>{{2, "gla"}, {2, "mamba"}, {1, "gla"}, {1, "mamba"}}));
}

TEST(Suite, FileWithoutGridIsOneRun) {
  EXPECT_EQ(suite_of("[train]\nupdates = 5\n").runs.size(), 1U);
}

TEST(Suite, AxisSetsSeveralKeysAtOnce) {
  const auto suite = suite_of(
      "[grid]\nsize = [{grammar.vocab = 11, grammar.depth = 10, grammar.ambiguities = 10},\n"
      "        {grammar.vocab = 21, grammar.depth = 20, grammar.ambiguities = 20}]\nrun.seed = [1, 2]\n");
  ASSERT_EQ(suite.runs.size(), 4U);
  EXPECT_EQ(suite.runs[1].values.grammar.build.depth, 10);
  EXPECT_EQ(suite.runs[1].values.train.seed, 2U);
  EXPECT_EQ(suite.runs[2].values.grammar.build.vocab, 21);
}

// Regression: the later axis had no effect.
TEST(Suite, RejectsTwoAxesThatSetSameKey) {
  const std::string line = suite_fault(
      "[grid]\ntrain.lr = [0.01, 0.003]\npreset = [{model.name = 'gla', train.lr = 0.0005}, {model.name = "
      "'mamba2'}]\n");
  EXPECT_EQ(line, "[grid] train.lr, expected on one axis, got it on another at suite.toml:2:7, suite.toml:3:38");
  EXPECT_EQ(suite_of("[grid]\npreset = [{train.lr = 0.1}, {train.lr = 0.2}]\n").runs.size(), 2U);
}

TEST(Suite, AppliesOverridesInOrderIfConditionsHold) {
  const auto suite = suite_of(R"(
[grid]
model.name = ["mamba", "mamba2"]
model.width = [64, 128, 256]
[[override]]
when = {model.name = "mamba"}
set = {model.d_state = 64, train.lr = 0.002}
[[override]]
when = {model.name = "mamba", model.width = [128, 256]}
set = {train.lr = 0.005}
[[override]]
when = {model.name = "mamba2", model.width = 256}
skip = true
)");
  ASSERT_EQ(suite.runs.size(), 5U);
  EXPECT_EQ(suite.skipped, 1U);
  EXPECT_EQ(suite.runs[0].values.train.lr, 0.002);
  EXPECT_EQ(suite.runs[1].values.train.lr, 0.005);
  EXPECT_EQ(suite.runs[1].values.model.switches.at("d_state"), "64");
  EXPECT_EQ(suite.runs[3].values.train.lr, 0.001);
  EXPECT_EQ(suite.runs[0].origins.at("train.lr").text(), "suite.toml:7:39");
}

TEST(Suite, ConditionsSeeDefaultsAndEarlierOverrides) {
  const auto suite = suite_of(R"(
[[override]]
when = {train.batch = 64}
set = {model.width = 96}
[[override]]
when = {model.width = 96}
set = {train.accumulate = 2}
)");
  EXPECT_EQ(suite.runs.front().values.train.accumulate, 2);
}

TEST(Suite, MergesEquivalentRuns) {
  const auto suite = suite_of(
      "[grid]\nmodel.width = [648, 768, 960]\n[model]\nname = 'transformer'\n"
      "[[override]]\nwhen = {model.width = 648}\nset = {model.width = 768}\n"
      "[[override]]\nwhen = {model.width = 960}\nskip = true\n");
  EXPECT_EQ(suite.runs.size(), 1U);
  EXPECT_EQ(suite.merged, 1U);
  EXPECT_EQ(suite.skipped, 1U);
}

TEST(Suite, AppliesSourcesInOrderOfPrecedence) {
  TemporaryFolder folder;
  write_file_atomically(folder.file("base.toml"), "[train]\nlr = 0.005\nbatch = 8\nupdates = 7\n");
  write_file_atomically(folder.file("s.toml"),
                        "[suite]\nbase = 'base.toml'\n[grid]\ntrain.updates = [9]\n[train]\nbatch = 4\n");
  const auto suite = read_suite(folder.file("s.toml"), {"eval.every=3"}, rules());
  const auto& train = suite.runs.front().values.train;
  EXPECT_EQ(train.lr, 0.005);
  EXPECT_EQ(train.batch, 4);
  EXPECT_EQ(train.updates, 9);
  EXPECT_EQ(suite.runs.front().values.eval.every, 3);
}

TEST(Suite, OneInvalidCombinationRejectsSuite) {
  EXPECT_EQ(suite_fault("[grid]\ntrain.lr = [0.001, -1]\n"),
            "[train.lr] out of range, expected (0, 10], got -1, suite.toml:2:20 (1 of 2 runs)");
  EXPECT_EQ(suite_fault("[grid]\nmodel.name = ['gla', 'mambo']\n"),
            "[model.name] unknown model, did you mean mamba?, suite.toml:2:22 (1 of 2 runs)");
}

TEST(Suite, ReadsAxesOfTables) {
  const auto suite = suite_of(
      "[suite]\nselect = ['train.weight_decay', 'model.d_state', 'train.weight_decay']\naverage = "
      "['grammar.automaton']\n");
  EXPECT_EQ(suite.select, (std::vector<std::string>{"train.weight_decay", "model.d_state"}));
  EXPECT_EQ(suite.average, std::vector<std::string>{"grammar.automaton"});
  EXPECT_EQ(suite_fault("[suite]\nselect = ['train.weight_decai']\n"),
            "[suite.select] unknown key 'train.weight_decai', did you mean train.weight_decay?, suite.toml:2:11");
  EXPECT_EQ(suite_fault("[suite]\nselect = ['model.d_stat']\n"),
            "[suite.select] unknown key 'model.d_stat', did you mean model.d_state?, suite.toml:2:11");
  EXPECT_EQ(suite_fault("[suite]\nselect = 'train.lr'\n"),
            "[suite.select] expected a list of keys, got 'train.lr', suite.toml:2:10");
  EXPECT_EQ(suite_fault("[suite]\naverage = [3]\n"), "[suite.average] expected a key, got 3, suite.toml:2:12");
  // Never over data, seeds or what is measured: the easiest test would win.
  for (const char* key : {"train.seed", "train.order_seed", "grammar.seed", "grammar.depth", "task.gap_max",
                          "eval.test_samples", "quirks.select_on_test", "model.name", "run.label"})
    EXPECT_TRUE(
        has(suite_fault("[suite]\nselect = ['" + std::string(key) + "']\n"), "expected a key of [model] or [train]"))
        << key;
  EXPECT_TRUE(has(suite_fault("[suite]\naverage = ['train.lr']\n"), "not selected over"));
  EXPECT_TRUE(
      has(suite_fault("[suite]\nselect = ['train.batch']\naverage = ['train.batch']\n"), "in select and average"));
}

TEST(Suite, ErrorsHaveLocation) {
  EXPECT_EQ(suite_fault("[gird]\n"), "[suite] unknown section 'gird', did you mean grid?, suite.toml:1:2");
  EXPECT_EQ(suite_fault("[grid]\ntrain.lrr = [1]\n"), "[train] unknown key 'lrr', did you mean lr?, suite.toml:2:7");
  EXPECT_EQ(suite_fault("[grid]\ntrain.lr = 1\n"), "[grid] expected a list of values, got 1, suite.toml:2:12");
  EXPECT_EQ(suite_fault("[grid]\ntrain.lr = []\n"), "[grid] expected a list of at least one value, suite.toml:2:7");
  EXPECT_EQ(suite_fault("[[override]]\nwhen = {train.lr = 'x'}\nset = {train.lr = 1}\n"),
            "[train.lr] wrong kind of value, expected a number, got 'x', suite.toml:2:20");
  EXPECT_EQ(suite_fault("[[override]]\nwhen = {train.lr = 1}\n"),
            "[override] expected set or skip = true, suite.toml:1:1\n"
            "[override] no run has train.lr = 1.0, the nearest is 0.001, suite.toml:2:20");
  EXPECT_EQ(suite_fault("[suite]\nbase = 'none.toml'\n"),
            "[suite.base] no file 'none.toml', expected one in the suite's folder, suite.toml:2:8");
  EXPECT_TRUE(has(suite_fault("[[override]]\nskip = true\n"), "no run is left"));
  std::string grid = "[grid]\n";
  for (const char* key : {"run.seed", "train.updates", "train.batch", "eval.every", "eval.batch"})
    grid += std::string(key) + " = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\n";
  EXPECT_TRUE(has(suite_fault(grid), "more than 100000 runs"));
}

TEST(Suite, ListsErrorsOfAllRuns) {
  EXPECT_EQ(suite_fault(R"(
[grid]
model.name = ["mamba", "mamva"]
train.batch = [8, 9, 0]
[train]
accumulate = 4
)"),
            "[train.accumulate] 4 does not divide batch (9), suite.toml:6:14 (2 of 6 runs)\n"
            "[train.batch] out of range, expected 1..65536, got 0, suite.toml:4:22 (2 of 6 runs)\n"
            "[model.name] unknown model, did you mean mamba?, suite.toml:3:24 (3 of 6 runs)");
}

TEST(Suite, ListsErrorsOfFileTogether) {
  EXPECT_EQ(error_line([] {
              parse_suite(R"([suite]
nmae = "x"
base = "absent.toml"
[evall]
x = 1
[grid]
train.lrr = [1, 2]
train.batch = [8, 0]
[[override]]
when = {model.width = "wide", train.bach = 3}
set = {train.udpates = 3}
[[override]]
whenn = 3
[train]
depht = 4
)",
                          "suite.toml", {"train.lrr=3", "train.warmup=x"}, rules());
            }),
            "[train] unknown key 'lrr', did you mean lr?, --set train.lrr=3\n"
            "[suite] unknown key 'nmae', did you mean name?, suite.toml:2:1\n"
            "[suite.base] no file 'absent.toml', expected one in the suite's folder, suite.toml:3:8\n"
            "[suite] unknown section 'evall', did you mean eval?, suite.toml:4:2\n"
            "[train] unknown key 'lrr', did you mean lr?, suite.toml:7:7\n"
            "[train] unknown key 'bach', did you mean batch?, suite.toml:10:37\n"
            "[model.width] wrong kind of value, expected an integer, got 'wide', suite.toml:10:23\n"
            "[train] unknown key 'udpates', did you mean updates?, suite.toml:11:14\n"
            "[override] unknown key 'whenn', expected when, set or skip = true, suite.toml:13:1\n"
            "[override] expected set or skip = true, suite.toml:12:1\n"
            "[train] unknown key 'depht', suite.toml:15:1\n"
            "[train.warmup] wrong kind of value, expected an integer, got 'x', --set train.warmup=x (4 of 4 runs)\n"
            "[train.batch] out of range, expected 1..65536, got 0, suite.toml:8:19 (2 of 4 runs)");
}

TEST(Suite, ConditionsUseCommandLineAndAreCheckedAgainstFile) {
  const std::string text =
      "[grid]\nmodel.name = ['mamba', 'gla']\n[[override]]\nwhen = {model.name = 'mamba'}\nset = {model.d_state = "
      "32}\n";
  const auto suite = parse_suite(text, "suite.toml", {"model.name=gla"}, rules());
  ASSERT_EQ(suite.runs.size(), 1U);
  EXPECT_TRUE(suite.runs[0].values.model.switches.empty());
  EXPECT_EQ(parse_suite(text, "suite.toml", {"model.name=mamba"}, rules()).runs[0].values.model.switches.size(), 1U);
}

TEST(Suite, ReportsMergedCombinations) {
  const auto suite = suite_of("[grid]\nrun.label = ['one', 'two']\nrun.seed = [1, 2]\n");
  EXPECT_EQ(suite.merged_lines(),
            std::vector<std::string>{"4 combinations are 2 runs, the same with run.label = 'one'; run.label = 'two'"});
  EXPECT_EQ(suite_of("[grid]\ntrain.clip = [2, 3]\neval.gaps = [[1, 2], [3]]\nrun.seed = [1, 2]\n",
                     {"train.clip=1", "eval.gaps=[4]", "run.seed=1"})
                .merged_lines()
                .at(0)
                .substr(0, 118),
            "8 combinations are one run, the same with train.clip = 2, eval.gaps = [1, 2], run.seed = 1; train.clip = "
            "2, eval.gaps ");
  std::string text = "[grid]\nrun.seed = [1, 2, 3, 4, 5, 6]\nrun.label = ['a', 'b']\n";
  for (int seed = 1; seed <= 6; ++seed)
    text += "[[override]]\nwhen = {run.label = 'b', run.seed = " + std::to_string(seed) +
            "}\nset = {run.seed = " + std::to_string(seed % 2 == 0 ? seed - 1 : seed) + "}\n";
  const auto mixed = suite_of(text);
  EXPECT_EQ(mixed.runs.size(), 6U);
  EXPECT_EQ(mixed.merged_lines(),
            (std::vector<std::string>{
                "3 combinations are one run, the same with run.seed = 1, run.label = 'a'; run.seed = 1, run.label = "
                "'b'; run.seed = 2, run.label = 'b'",
                "3 combinations are one run, the same with run.seed = 3, run.label = 'a'; run.seed = 3, run.label = "
                "'b'; run.seed = 4, run.label = 'b'",
                "3 combinations are one run, the same with run.seed = 5, run.label = 'a'; run.seed = 5, run.label = "
                "'b'; run.seed = 6, run.label = 'b'"}));
  EXPECT_TRUE(suite_of("[grid]\nrun.seed = [1, 2]\n").merged_lines().empty());
}

TEST(Suite, FindsBaseNextToFileThenAmongShippedConfigs) {
  TemporaryFolder own, shipped;
  std::filesystem::create_directory(shipped.file("paper"));
  write_file_atomically(shipped.file("paper/base.toml"), "[train]\nbatch = 8\n");
  write_file_atomically(own.file("s.toml"), "[suite]\nbase = 'paper/base.toml'\n");
  write_file_atomically(own.file("r.toml"), "extends = 'paper/base.toml'\n");
  ModelRules with = rules();
  EXPECT_NE(error_line([&] { read_suite(own.file("s.toml"), {}, with); }), "");
  with.shipped = shipped.path();
  EXPECT_EQ(read_suite(own.file("s.toml"), {}, with).runs[0].values.train.batch, 8);
  EXPECT_EQ(resolve_config(own.file("r.toml"), {}, with).values.train.batch, 8);
  std::filesystem::create_directory(own.file("paper"));
  write_file_atomically(own.file("paper/base.toml"), "[train]\nbatch = 4\n");
  write_file_atomically(shipped.file("plain.toml"), "[train]\nbatch = 16\n");
  write_file_atomically(own.file("short.toml"), "extends = 'plain'\n");
  EXPECT_EQ(resolve_config(own.file("short.toml"), {}, with).values.train.batch, 16) << "without .toml, as by name";
  write_file_atomically(own.file("short_suite.toml"), "[suite]\nbase = 'paper/base'\n");
  EXPECT_EQ(read_suite(own.file("short_suite.toml"), {}, with).runs[0].values.train.batch, 4);
  EXPECT_EQ(read_suite(own.file("s.toml"), {}, with).runs[0].values.train.batch, 4);
  EXPECT_EQ(resolve_config(own.file("r.toml"), {}, with).values.train.batch, 4);
}

TEST(Suite, RejectsConditionThatNoRunMeets) {
  const std::string grid = "[grid]\nmodel.name = ['mamba', 'gla']\nmodel.width = [256, 512]\n";
  const auto when = [&](const std::string& condition) {
    return suite_fault(grid + "[[override]]\nwhen = {" + condition + "}\nset = {train.lr = 0.002}\n");
  };
  EXPECT_EQ(when("model.name = 'mamba2'"),
            "[override] no run has model.name = \"mamba2\", the nearest is \"mamba\", suite.toml:5:22");
  EXPECT_EQ(when("model.width = [256, 500]"),
            "[override] no run has model.width = 500, the nearest is 512, suite.toml:5:29");
  EXPECT_EQ(when("model.d_sate = 64"),
            "[override] no run has model.d_sate, did you mean model.d_state?, suite.toml:5:15");
  EXPECT_EQ(when("model.d_state = 64"), "[override] no run has model.d_state, suite.toml:5:15");
  EXPECT_EQ(when("task.noise = 0.2"), "[override] no run has task.noise = 0.2, the nearest is 0.0, suite.toml:5:22");
  EXPECT_EQ(when("train.batch = 64, model.width = 512"), "") << "defaults are values that runs have";
}

TEST(Suite, ConditionsSeeDerivedValues) {
  const auto suite = suite_of(
      "[grid]\ntask.number = [1, 2]\n[[override]]\nwhen = {task.noise = 0.2}\nset = {train.lr = 0.002}\n"
      "[[override]]\nwhen = {model.d_state = '32'}\nset = {train.batch = 8}\n"
      "[model]\nname = 'mamba'\nd_state = 32\n");
  EXPECT_EQ(suite.runs[0].values.train.lr, 0.001);
  EXPECT_EQ(suite.runs[1].values.train.lr, 0.002);
  EXPECT_EQ(suite.runs[0].values.train.batch, 8);
}

TEST(Suite, ConditionsSeeResolvedDevice) {
  for (const bool gpu : {false, true})
    for (const char* given : {"", "[train]\ndevice = 'auto'\n"}) {
      ModelRules with = rules();
      with.has_gpu = [gpu] { return gpu; };
      const auto lr_when = [&](const std::string& condition) {
        const std::string text = given + ("[[override]]\nwhen = {" + condition + "}\nset = {train.lr = 0.002}\n");
        return parse_suite(text, "suite.toml", {}, with).runs.at(0).values.train.lr;
      };
      EXPECT_EQ(lr_when("train.device = 'cuda'"), gpu ? 0.002 : 0.001);
      EXPECT_EQ(lr_when("train.device = 'cpu'"), gpu ? 0.001 : 0.002);
      EXPECT_EQ(lr_when("train.precision = 'amp'"), gpu ? 0.002 : 0.001);
      EXPECT_EQ(lr_when("train.precision = 'fp32'"), gpu ? 0.001 : 0.002);
      for (const char* never : {"train.device = 'auto'", "train.precision = 'tf32'"})
        EXPECT_TRUE(has(error_line([&] { lr_when(never); }), "[override] no run has " + std::string(never, 12)))
            << "on no machine: " << never;
    }
  EXPECT_NE(suite_fault("[[override]]\nwhen = {train.device = 'cuda'}\nskip = true\n[train]\ndevice = 'cpu'\n"), "")
      << "the file says where";
}

TEST(Suite, ListsVaryingKeys) {
  const auto suite = suite_of(
      "[grid]\nmodel.name = ['mamba', 'gla']\nrun.seed = [1, 2]\n[train]\nlr = 0.002\n"
      "[[override]]\nwhen = {model.name = 'mamba'}\nset = {model.d_state = 32}\n");
  EXPECT_EQ(varying_keys(suite.runs), (std::vector<std::string>{"model.name", "model.d_state", "run.seed"}));
  EXPECT_EQ(value_text(suite.runs[0], "model.name"), "mamba");
  EXPECT_EQ(value_text(suite.runs[0], "model.d_state"), "32");
  EXPECT_EQ(value_text(suite.runs[2], "model.d_state"), "");
  EXPECT_EQ(value_text(suite.runs[3], "run.seed"), "2");
}

TEST(Suite, ReadsAutomatonOnceForAllRuns) {
  TemporaryFolder folder;
  write_file_atomically(folder.file("a.json"),
                        R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})");
  write_file_atomically(folder.file("s.toml"), "[grid]\nrun.seed = [1, 2]\n[grammar]\nautomaton = 'a.json'\n");
  const auto suite = read_suite(folder.file("s.toml"), {}, rules());
  EXPECT_EQ(suite.runs[0].values.grammar.file, suite.runs[1].values.grammar.file);
  EXPECT_TRUE(is_suite(read_config_text(folder.file("s.toml")), "s.toml"));
  EXPECT_FALSE(is_suite("[grammar]\nautomaton = 'a.json'\n", "r.toml"));
}

TEST(Suite, RejectsConfigOfOneRun) {
  EXPECT_EQ(suite_fault("extends = 'example'\n[train]\nbatch = 8\n"),
            "[suite] expected a suite with [suite], [grid] or [[override]], got the config of one run; use `train`, "
            "suite.toml:1:1");
  EXPECT_EQ(
      suite_fault("extends = 'example'\n[grid]\nrun.seed = [1, 2]\n"),
      "[suite] a suite has no 'extends', expected the file it builds on as base or extends in [suite], suite.toml:1:1");
}

TEST(Suite, MatchesEveryModelToTargetSize) {
  const std::string text =
      "[suite]\nmatch = 'params'\nmatch_target = 80000\nmatch_step = 4\n"
      "[grid]\nmodel.name = ['gla', 'mamba']\nmodel.layers = [2, 8]\n";
  const auto suite = suite_of(text);
  ASSERT_EQ(suite.runs.size(), 4U);
  EXPECT_EQ(suite.runs[0].values.model.width, 200);
  EXPECT_EQ(suite.runs[1].values.model.width, 100);
  EXPECT_EQ(suite.runs[0].origins.at("model.width").text(), "suite.toml:2:1");
  ASSERT_EQ(suite.matched.size(), 4U);
  EXPECT_EQ(match_lines(suite.matched),
            (std::vector<std::string>{"parameters matched to 80,000: 1.000 (gla) to 1.000 (mamba) of it"}));
  // The width is that of a run whose file says it.
  const auto typed = suite_of("[model]\nname = 'gla'\nlayers = 2\nwidth = 200\n");
  EXPECT_EQ(suite.runs[0].run_id, typed.runs[0].run_id);
}

TEST(Suite, TargetSizesAreSlowestAxis) {
  const auto suite = suite_of(
      "[suite]\nmatch = 'params'\nmatch_target = [80000, 320000]\n[model]\nlayers = 2\n[grid]\nmodel.name = ['gla', "
      "'mamba']\n");
  std::vector<int> widths;
  for (const auto& run : suite.runs) widths.push_back(run.values.model.width);
  EXPECT_EQ(widths, (std::vector<int>{200, 200, 400, 400}));
  EXPECT_EQ(match_lines(suite.matched).size(), 2U);
}

TEST(Suite, ReportsImpossibleSizesInOneLine) {
  const std::string head = "[suite]\nmatch = 'params'\nmatch_target = ";
  EXPECT_EQ(suite_fault(head + "3\n[model]\nname = 'gla'\n"),
            "[suite.match] gla: the nearest is width 1, suite.toml:2:1");
  EXPECT_EQ(suite_fault(head + "80000\n[model]\nwidth = 64\n"),
            "[suite.match] cannot be combined with model.width, which it determines, suite.toml:5:9");
  EXPECT_EQ(suite_fault("[suite]\nmatch = 'weight'\nmatch_target = 5\n"),
            "[suite.match] expected params, state or flops, got 'weight', suite.toml:2:9");
  EXPECT_EQ(suite_fault(head + "0\n"),
            "[suite.match_target] expected a number, or several, from 1 to 1e15, got 0, suite.toml:3:16");
  EXPECT_EQ(suite_fault(head + "[5, 5]\n").substr(0, 50), "[suite.match_target] expected each size once, got ");
  EXPECT_EQ(suite_fault("[suite]\nmatch = 'params'\n"), "[suite.match] requires match_target, suite.toml:2:1");
  EXPECT_EQ(suite_fault("[suite]\nmatch_target = 5\n"),
            "[suite.match] required by match_target and match_step, suite.toml:2:1");
  EXPECT_EQ(suite_fault(head + "5\nmatch_step = 0\n"),
            "[suite.match_step] expected an integer from 1 to 1024, got 0, suite.toml:4:14");
  // What is wrong with the model is said instead.
  EXPECT_TRUE(has(suite_fault(head + "80000\n[model]\nname = 'glaa'\n"), "[model.name]"));
  ModelRules none = rules();
  none.match = {};
  EXPECT_EQ(error_line([&] { parse_suite(head + "80000\n", "suite.toml", {}, none); }),
            "[suite.match] matching sizes requires a program built with libtorch, suite.toml:2:1");
}

TEST(Suite, AppliesExtendedSuiteFirst) {
  TemporaryFolder folder;
  write_file_atomically(folder.file("scale.toml"),
                        "[train]\nupdates = 10\nwarmup = 1\n[grid]\nrun.seed = [1, 2, 3]\nmodel.name = ['gla']\n"
                        "[sweep]\ntrain.lr = [0.1, 0.2]\n"
                        "[[override]]\nwhen = {model.name = 'mamba'}\nset = {model.d_state = 16}\n"
                        "[[override]]\nwhen = {model.name = 's4'}\nset = {model.d_state = 4}\n");
  const std::string path = folder.file("suite.toml");
  const std::string text = "[suite]\nextends = 'scale'\n[train]\nupdates = 20\n[grid]\nmodel.name = ['gla', 'mamba']\n";
  const auto suite = parse_suite(text, path, {}, rules());
  ASSERT_EQ(suite.runs.size(), 6U) << "an axis of the same name is replaced where it stood";
  EXPECT_EQ(suite.runs[0].values.run.seed, 1U);
  EXPECT_EQ(suite.runs[1].values.model.name, "mamba");
  EXPECT_EQ(suite.runs[1].values.model.switches.at("d_state"), "16");
  EXPECT_EQ(suite.runs[1].values.train.updates, 20);
  EXPECT_EQ(suite.runs[1].values.train.warmup, 1);
  EXPECT_EQ(parse_suite(text, path, {}, rules(), {"", true}).runs.size(), 12U) << "a sweep has axes of its own";
  EXPECT_TRUE(has(error_line([&] { parse_suite("[suite]\nextends = 'none'\n", path, {}, rules()); }),
                  "[suite.extends] no file 'none'"));
  write_file_atomically(folder.file("round.toml"), "[suite]\nextends = 'round'\n");
  EXPECT_TRUE(
      has(error_line([&] { read_suite(folder.file("round.toml"), {}, rules()); }), "files that extend each other"));
}

TEST(Suite, AppliesSectionsOfRequestedScale) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("scales"));
  write_file_atomically(folder.file("scales/tiny.toml"), "[train]\nupdates = 10\n");
  write_file_atomically(folder.file("scales/large.toml"), "[train]\nupdates = 99\n");
  const std::string text =
      "[grid]\nrun.seed = [1, 2]\n[scale.large.grid]\nrun.seed = [1]\n[scale.large.train]\nbatch = 8\n";
  const auto at = [&](const std::string& scale) {
    return parse_suite(text, folder.file("suite.toml"), {}, rules(), {scale, false});
  };
  EXPECT_EQ(at("tiny").runs.size(), 2U);
  ASSERT_EQ(at("large").runs.size(), 1U);
  EXPECT_EQ(at("large").runs[0].values.train.updates, 99);
  EXPECT_EQ(at("large").runs[0].values.train.batch, 8);
  EXPECT_TRUE(has(error_line([&] { at(""); }), "[scale] a scale must be chosen"));
  EXPECT_TRUE(has(error_line([&] { at("huge"); }), "[scale] no file 'scales/huge'"));
  // So has a suite that builds on it.
  write_file_atomically(folder.file("suite.toml"), text);
  const auto built = [&](const std::string& scale) {
    return parse_suite("[suite]\nextends = 'suite'\n", folder.file("other.toml"), {}, rules(), {scale, false});
  };
  ASSERT_EQ(built("large").runs.size(), 1U);
  EXPECT_EQ(built("large").runs[0].values.train.batch, 8);
  EXPECT_TRUE(has(error_line([&] { built(""); }), "[scale] a scale must be chosen"));
}

TEST(Suite, OrdersWorkByFirstSeedOfEverySetting) {
  const auto suite = suite_of("[grid]\nmodel.name = ['gla', 'mamba']\nrun.seed = [3, 1, 2]\ntrain.lr = [0.1, 0.2]\n");
  std::vector<std::string> names;
  for (const size_t i : order_of_work(suite)) {
    const auto& run = suite.runs[i].values;
    names.push_back(run.model.name + " " + std::to_string(run.run.seed) + (run.train.lr < 0.15 ? " low" : " high"));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"gla 3 low", "gla 3 high", "mamba 3 low", "mamba 3 high",  //
                                             "gla 1 low", "gla 1 high", "mamba 1 low", "mamba 1 high",  //
                                             "gla 2 low", "gla 2 high", "mamba 2 low", "mamba 2 high"}));
}

TEST(Suite, SelectsRunsByValues) {
  const std::string text =
      "[suite]\nmatch = 'params'\nmatch_target = 80000\n[model]\nlayers = 2\n"
      "[grid]\nmodel.name = ['gla', 'mamba', 'mamba2']\nrun.seed = [1, 2]\nrun.label = ['a', 'b']\n";
  const auto kept = [&](const std::vector<std::string>& conditions) {
    Suite suite = suite_of(text);
    keep_where(suite, conditions, "suite --where");
    return suite;
  };
  EXPECT_EQ(kept({"run.seed=2"}).runs.size(), 3U);
  const Suite two = kept({"model.name=gla,mamba2", "run.seed=1"});
  ASSERT_EQ(two.runs.size(), 2U);
  EXPECT_EQ(two.runs[1].values.model.name, "mamba2");
  EXPECT_EQ(two.matched.size(), 2U) << "networks that are left";
  EXPECT_EQ(two.names.size(), 2U) << "two labels are one run each";
  EXPECT_EQ(error_line([&] { kept({"run.seed"}); }),
            "[suite --where] expected SECTION.KEY=VALUE or several values with commas, got 'run.seed'");
  EXPECT_TRUE(has(error_line([&] { kept({"run.sed=1"}); }), "no run has the key 'run.sed', did you mean run.seed?"));
  EXPECT_EQ(error_line([&] { kept({"run.seed=3"}); }), "[suite --where] no run has run.seed = '3', expected 1 or 2");
}

TEST(Suite, SelectsRunsByValuesInAnySpelling) {
  const std::string text =
      "[grid]\neval.gaps = [[4, 8], [8], []]\ntrain.lr = [1e-3, 0.02]\nmodel.a_min = [0.5, 0.9]\n[model]\nname = "
      "'gla'\n";
  const auto kept = [&](const std::vector<std::string>& conditions) {
    Suite suite = suite_of(text);
    keep_where(suite, conditions, "suite --where");
    return suite.runs.size();
  };
  EXPECT_EQ(kept({"eval.gaps=[4,8]"}), 4U);
  EXPECT_EQ(kept({"eval.gaps=[8, 4]"}), 4U);
  EXPECT_EQ(kept({"eval.gaps=[4,8],[8]"}), 8U);
  EXPECT_EQ(kept({"eval.gaps=[]"}), 4U);
  EXPECT_EQ(kept({"train.lr=0.0010"}), 6U);
  EXPECT_EQ(kept({"train.lr=1e-3,2e-2", "model.a_min=0.50"}), 6U);
  EXPECT_EQ(error_line([&] { kept({"eval.gaps=4"}); }),
            "[suite --where] no run has eval.gaps = '4', expected [], [8] or [4, 8]");
  EXPECT_EQ(error_line([&] { kept({"eval.gaps=[4"}); }),
            "[suite --where] no run has eval.gaps = '[4', expected [], [8] or [4, 8]");
}

TEST(Suite, SelectsRunsByTextWithSpecialCharacters) {
  Suite suite = suite_of(
      "[grid]\nrun.label = ['lr (high)', 'plain']\ntrain.lr = [1e-3, 0.02]\n[[override]]\nwhen = {run.label = "
      "'plain'}\nset = {train.warmup = 7}\n[model]\nname = 'gla'\n");
  const size_t all = suite.runs.size();
  keep_where(suite, {"run.label=lr (high)"}, "suite --where");
  EXPECT_GT(suite.runs.size(), 0U);
  EXPECT_LT(suite.runs.size(), all);
  for (const auto& run : suite.runs) EXPECT_EQ(run.values.run.label, "lr (high)");
}

TEST(Suite, RejectsUnknownScale) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("scales"));
  write_file_atomically(folder.file("scales/small.toml"), "[train]\nupdates = 10\n");
  write_file_atomically(folder.file("scales/paper.toml"), "[train]\nupdates = 99\n");
  const auto fault = [&](const std::string& text) {
    return error_line([&] {
      parse_suite("[grid]\nrun.seed = [1, 2]\n" + text, folder.file("suite.toml"), {}, rules(), {"small", false});
    });
  };
  EXPECT_EQ(fault("[scale.small.grid]\nrun.seed = [1]\n[scale.paper.train]\nbatch = 8\n"), "");
  EXPECT_EQ(fault("[scale.smal.grid]\nrun.seed = [1]\n"),
            "[scale] unknown scale 'smal', did you mean small?, " + folder.file("suite.toml") + ":3:8");
  EXPECT_EQ(fault("[scale.enormous.grid]\nrun.seed = [1]\n"),
            "[scale] unknown scale 'enormous', expected paper or small, " + folder.file("suite.toml") + ":3:8");
  EXPECT_TRUE(has(fault("[scale]\nsmall = 3\n"), "[scale] expected sections [scale.NAME], got 3, "));
}

// Keys of a kind of task have defaults too.
TEST(Suite, ConditionsSeeDefaultsOfOwnKeys) {
  const Suite suite = suite_of(
      "[task]\nkind = 'tracking'\n[grid]\ntask.sensor_noise = [0.5, 0.6]\n"
      "[[override]]\nwhen = {task.missing = 30, task.sensor_noise = 0.5}\nset = {train.lr = 0.002}\n");
  ASSERT_EQ(suite.runs.size(), 2U);
  EXPECT_EQ(suite.runs[0].values.train.lr, 0.002);
  EXPECT_EQ(suite.runs[1].values.train.lr, 0.001);
}

}  // namespace
}  // namespace sb::test
