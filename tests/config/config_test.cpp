#include "config/config_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "base/file.h"
#include "config/config_faults.h"
#include "config/data.h"
#include "model_rules.h"
#include "suites/suite.h"

namespace sb::test {
namespace {

TEST(Config, EmptyFileIsDefaultRun) {
  const auto config = resolve_text("");
  EXPECT_EQ(config.values.train.updates, 3125);
  EXPECT_EQ(config.values.train.warmup, 476);
  EXPECT_EQ(config.values.model.name, "gated_delta_net");
  EXPECT_EQ(config.values.grammar.build.density, 0.4 / 40);
  EXPECT_EQ(config.run_id.size(), 16U);
}

TEST(Config, EveryParameterHasOriginAndMeaning) {
  const auto config = resolve_text("[train]\nlr = 0.002\n", {"model.width=64"});
  for (const auto& p : config_keys()) {
    EXPECT_TRUE(config.origins.contains(p.name())) << p.name();
    EXPECT_FALSE(p.meaning.empty()) << p.name();
  }
  EXPECT_EQ(config.origins.at("train.lr").text(), "run.toml:2:6");
  EXPECT_EQ(config.origins.at("model.width").text(), "--set model.width=64");
  EXPECT_EQ(config.origins.at("train.batch").text(), "default");
  EXPECT_EQ(config.origins.at("grammar.density").text(), "derived from 0.4 / grammar.depth");
}

TEST(Config, EveryDefaultIsInItsOwnRange) {
  for (const auto& p : config_keys()) {
    if (p.name() == "grammar.density") continue;
    Settings settings = parse_settings("", "run.toml");
    const std::string text = "[" + p.section + "]\n" + p.key + " = " + toml_text(p.get(RunConfig{}));
    EXPECT_EQ(fault_of(text), "") << p.name();
  }
}

TEST(Config, ErrorsMentionAutoIfAllowed) {
  EXPECT_EQ(fault_of("[train]\naccumulate = 'atuo'\n"),
            "[train.accumulate] wrong kind of value, expected an integer or auto, got 'atuo', run.toml:2:14");
  EXPECT_EQ(fault_of("[train]\naccumulate = 0\n"),
            "[train.accumulate] out of range, expected 1..65536 or auto, got 0, run.toml:2:14");
  EXPECT_EQ(fault_of("[train]\nbatch = 'auto'\n"),
            "[train.batch] wrong kind of value, expected an integer, got 'auto', run.toml:2:9");
  EXPECT_EQ(fault_of("[train]\nbatch = 7\naccumulate = 'auto'\n"), "");
}

TEST(Config, UnknownNamesAreReportedWithNearestNameAndLocation) {
  EXPECT_EQ(fault_of("[train]\nbacth = 3\n"), "[train] unknown key 'bacth', did you mean batch?, run.toml:2:1");
  EXPECT_EQ(fault_of("\n[trian]\nbatch = 3\n"), "[config] unknown section 'trian', did you mean train?, run.toml:2:2");
  EXPECT_EQ(fault_of("batch = 3\n"), "[config] unknown section 'batch', run.toml:1:1");
  EXPECT_EQ(fault_of("[model]\nname = 'mamba'\nd_sate = 64\n"),
            "[model] unknown key 'd_sate', did you mean d_state?, run.toml:3:1");
  EXPECT_EQ(fault_of("[model]\nwidht = 64\n"), "[model] unknown key 'widht', did you mean width?, run.toml:2:1");
  EXPECT_EQ(fault_of("", {"train.bacth=3"}), "[train] unknown key 'bacth', did you mean batch?, --set train.bacth=3");
  EXPECT_EQ(fault_of("[task]\nstream = 'refrence'\n"),
            "[task.stream] no such choice, expected reference or direct, got 'refrence', did you mean reference?, "
            "run.toml:2:10");
}

TEST(Config, ErrorsOfModelsModuleHaveLocation) {
  EXPECT_EQ(fault_of("[model]\nname = 'mamva'\n"), "[model.name] unknown model, did you mean mamba?, run.toml:2:8");
  EXPECT_EQ(fault_of("[model]\nd_state = 64\nname = 'gla'\n"), "[model.d_state] gla has no such switch, run.toml:2:11");
  EXPECT_EQ(fault_of("[model]\nd_state = [64]\nname = 'mamba'\n"),
            "[model.d_state] wrong kind of value, expected a number, a boolean or text, got a list, run.toml:2:11");
}

TEST(Config, ChecksTypeAndRangeOfEveryParameter) {
  EXPECT_EQ(fault_of("[train]\nlr = -1\n"), "[train.lr] out of range, expected (0, 10], got -1, run.toml:2:6");
  EXPECT_EQ(fault_of("[train]\nlr = nan\n"), "[train.lr] out of range, expected (0, 10], got nan, run.toml:2:6");
  EXPECT_EQ(fault_of("[train]\nclip = inf\n"), "[train.clip] out of range, expected [0, inf), got inf, run.toml:2:8");
  EXPECT_EQ(fault_of("[train]\nbatch = 8.0\n"),
            "[train.batch] wrong kind of value, expected an integer, got 8.0, run.toml:2:9");
  EXPECT_EQ(fault_of("[quirks]\ndelta_bf16 = 1\n"),
            "[quirks.delta_bf16] wrong kind of value, expected true or false, got 1, run.toml:2:14");
  EXPECT_EQ(fault_of("[eval]\ngaps = [10, -1]\n"),
            "[eval.gaps] out of range, expected a list of 0..100000, got -1, run.toml:2:13");
  EXPECT_EQ(fault_of("[train]\nlr = 1979-05-27\n"),
            "[config] expected a number, text, true, false or a list, got a date or time, run.toml:2:6");
  for (const auto& p : config_keys()) {
    const std::string text = "[" + p.section + "]\n" + p.key + " = {a = 1}\n";
    EXPECT_TRUE(has(fault_of(text), "run.toml:2:")) << p.name();
  }
}

TEST(Config, ChecksParametersAgainstEachOther) {
  EXPECT_EQ(fault_of("[train]\nbatch = 10\naccumulate = 4\n"),
            "[train.accumulate] 4 does not divide batch (10), run.toml:3:14");
  EXPECT_EQ(fault_of("[train]\nupdates = 100\nwarmup = 100\n"),
            "[train.warmup] expected less than updates (100), got 100, run.toml:3:10");
  EXPECT_EQ(fault_of("[task]\ngap_law = 'uniform'\ngap_min = 12\ngap_max = 10\n"),
            "[task.gap_min] gap_min (12) > gap_max (10), run.toml:3:11");
  EXPECT_EQ(fault_of("[grammar]\nvocab = 10\nambiguities = 10\n"),
            "[grammar.ambiguities] expected at most vocab - 1 (9), got 10, run.toml:3:15");
  EXPECT_EQ(fault_of("[grammar]\ndepth = 60000\n"),
            "[grammar.depth] 2400001 states, expected at most 65536, run.toml:2:9");
  EXPECT_EQ(fault_of("[train]\nprecision = 'amp'\n"),
            "[train.precision] amp requires device cuda; use fp32 or fp64 on the CPU, run.toml:2:13");
  EXPECT_EQ(fault_of("[eval]\ngaps = [10, 10]\n"),
            "[eval.gaps] expected different values, got one twice, run.toml:2:8");
}

TEST(Config, ReportsAllErrorsAtOnce) {
  EXPECT_EQ(fault_of("[train]\nlr = -1\nbatch = 'x'\n[model]\nd_sate = 3\n"),
            "[train.batch] wrong kind of value, expected an integer, got 'x', run.toml:3:9\n"
            "[train.lr] out of range, expected (0, 10], got -1, run.toml:2:6\n"
            "[model] unknown key 'd_sate', did you mean d_state?, run.toml:5:1");
  EXPECT_EQ(fault_of("[train]\nbatch = 10\naccumulate = 4\n[task]\nlength = 20\ngap_law = 'constant'\n"
                     "gap_start = 30\ntest_gap_start = 0\n[model]\nname = 'mamva'\n"),
            "[task.gap_start] expected at most length (20), got 30, run.toml:7:13\n"
            "[train.accumulate] 4 does not divide batch (10), run.toml:3:14\n"
            "[model.name] unknown model, did you mean mamba?, run.toml:10:8");
}

TEST(Config, IntegersBeyond64BitsAreOutOfRange) {
  for (const std::string number : {"99999999999999999999999", "-9223372036854775809"})
    EXPECT_EQ(fault_of("", {"train.batch=" + number}),
              "[train.batch] out of range, expected 1..65536, got " + number + ", --set train.batch=" + number);
}

TEST(Config, UnknownNamesDoNotHideOtherErrors) {
  EXPECT_EQ(fault_of("[grammar]\ndepht = 3\nvocab = 10\nambiguities = 10\n[train]\nbacth = 2\nlr = 'fast'\n"
                     "batch = 10\naccumulate = 4\n[evall]\nx = 1\n[model]\nname = 'mamva'\n",
                     {"train.upd=1", "run", "eval.batch=0"}),
            "[grammar] unknown key 'depht', did you mean depth?, run.toml:2:1\n"
            "[train] unknown key 'bacth', did you mean batch?, run.toml:6:1\n"
            "[config] unknown section 'evall', did you mean eval?, run.toml:10:2\n"
            "[train] unknown key 'upd', did you mean eps?, --set train.upd=1\n"
            "[config] expected section.key=value, got --set run\n"
            "[train.lr] wrong kind of value, expected a number, got 'fast', run.toml:7:6\n"
            "[eval.batch] out of range, expected 1..65536, got 0, --set eval.batch=0\n"
            "[grammar.ambiguities] expected at most vocab - 1 (9), got 10, run.toml:4:15\n"
            "[train.accumulate] 4 does not divide batch (10), run.toml:9:14\n"
            "[model.name] unknown model, did you mean mamba?, run.toml:13:8");
  EXPECT_EQ(fault_of("[train]\nbatch = 0\naccumulate = 7\n[task]\nlength = 'x'\nnumber = 3\n"),
            "[task.length] wrong kind of value, expected an integer, got 'x', run.toml:5:10\n"
            "[train.batch] out of range, expected 1..65536, got 0, run.toml:2:9")
      << "nothing is said of what depends on a value that is refused";
}

TEST(Config, RejectsGrammarKeysWithAutomatonInSameFile) {
  TemporaryFolder folder;
  write_file_atomically(folder.file("a.json"),
                        R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})");
  const std::string automaton = "automaton = '" + folder.file("a.json") + "'\n";
  EXPECT_EQ(fault_of("[grammar]\nvocab = 5\nseed = 2\n" + automaton),
            "[grammar.vocab] cannot be combined with grammar.automaton, run.toml:2:1");
  const auto config = resolve_text("[grammar]\nvocab = 5\n", {"grammar." + automaton.substr(0, automaton.size() - 1)});
  EXPECT_TRUE(lacks(config_toml(config, false), "vocab"));
  EXPECT_TRUE(has(config_toml(config, true), "# vocab = 5", "has no effect here"));
  EXPECT_EQ(resolve_text(config_toml(config, true)).run_id, config.run_id);
}

TEST(Config, RejectsGrammarKeysOnCommandLineWithAutomaton) {
  TemporaryFolder folder;
  const std::string path = folder.file("a.json");
  write_file_atomically(path, R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})");
  const std::string fault = "[grammar.vocab] cannot be combined with grammar.automaton, --set grammar.vocab=5";
  EXPECT_EQ(fault_of("", {"grammar.automaton=" + path, "grammar.vocab=5", "grammar.seed=3"}), fault);
  EXPECT_EQ(fault_of("", {"grammar.vocab=5", "grammar.automaton=" + path}), fault);
  EXPECT_EQ(fault_of("[grammar]\nautomaton = '" + path + "'\n", {"grammar.vocab=5"}), fault);
  EXPECT_EQ(fault_of("", {"grammar.vocab=50", "grammar.automaton=" + path, "grammar.automaton=''"}), "");
  const auto suite = [&](const std::string& text, const std::vector<std::string>& overrides) {
    return error_line([&] { parse_suite(text, "suite.toml", overrides, rules()); });
  };
  EXPECT_EQ(suite("[grid]\nrun.seed = [1, 2]\n", {"grammar.automaton=" + path, "grammar.vocab=5"}), fault);
  // It acts on one of these.
  EXPECT_EQ(suite("[grid]\ngrammar.automaton = ['', '" + path + "']\n", {"grammar.vocab=50"}), "");
}

TEST(Config, ShowMarksKeysWithoutEffect) {
  const std::string text = config_toml(resolve_text("[task]\nnumber = 1\ngap_max = 5\n"), true);
  EXPECT_TRUE(has(text, "# run.toml:3:11, has no effect here"));
}

TEST(Config, TestGapRangeStartsAtShortestTrainingGap) {
  const auto test = resolve_text("[task]\nnumber = 2\ntest_gap_law = 'uniform'\n");
  EXPECT_EQ(test.values.task.task.test.min, test.values.task.task.train.min);
  EXPECT_EQ(test.values.task.task.test.max, 10);
  EXPECT_LT(test.values.task.task.test.min, 10);
}

TEST(Config, RejectsLengthsWithTooLargeTable) {
  EXPECT_EQ(fault_of("[task]\nlength = 1000000\n"),
            "[task.length] a table of 1000001 lengths times 1601 states, expected at most 268435456 entries, got "
            "1601001601, run.toml:2:10");
  EXPECT_EQ(fault_of("[task]\nlength = 160000\n"), "");
}

TEST(Config, TasksTwoAndFourAreTestedAtTheLongestTrainingGap) {
  const auto test = [](const std::string& text) {
    return resolve_text("[task]\nnumber = 2\n" + text).values.task.task.test;
  };
  EXPECT_EQ(test("").min, 10);
  EXPECT_EQ(test("gap_max = 50\n").min, 50);
  EXPECT_EQ(test("gap_law = 'constant'\ngap_min = 5\n").min, 5);
  EXPECT_EQ(test("gap_law = 'constant'\ngap_min = 5\ntest_gap_min = 7\n").min, 7);
  EXPECT_EQ(test("gap_min = 3\n").min, 10);
  EXPECT_EQ(test("gap_probability = 0.5\n").probability, 0.5);
}

TEST(Config, TaskAloneResolvesAsInFullConfig) {
  for (const std::string text : {"number = 2\ngap_max = 50\n", "number = 3\ngap_probability = 0.5\n", "number = 1\n",
                                 "number = 4\ngap_law = 'constant'\ngap_min = 4\nnoise = 0.5\n", "number = 0\n"}) {
    const Settings settings = parse_settings("[task]\n" + text, "run.toml");
    const ResolvedConfig whole = resolve(settings, rules(), "run.toml");
    RunConfig alone;
    alone.task = resolve_task(settings, "run.toml");
    for (const auto& p : config_keys())
      if (p.section == "task") {
        EXPECT_EQ(p.get(alone), p.get(whole.values)) << p.name() << "\n" << text;
      }
  }
  EXPECT_EQ(
      error_line([] { resolve_task(parse_settings("[task]\nnumber = 2\ngap_min = 12\n", "run.toml"), "run.toml"); }),
      "[task.gap_min] gap_min (12) > gap_max (10), run.toml:3:11");
}

TEST(Config, SyntaxErrorsHaveLocation) {
  for (const std::string text : {"[train\nlr = 1", "[train]\nlr = \n", "[train]\nlr = 1\nlr = 2\n", "a.b.c = [1, 2",
                                 "[train]\nlr = 'x\n", "\xff\xfe", "[train]\nlr = 1__0\n"}) {
    const std::string line = fault_of(text);
    EXPECT_TRUE(has(line, ", run.toml:"));
    EXPECT_TRUE(lacks(line, "\n"));
  }
}

TEST(Config, RejectsDeepNamesAndNestingWithoutRecursion) {
  std::string name = "a";
  for (int i = 0; i < 100000; ++i) name += ".a";
  EXPECT_TRUE(has(fault_of("[" + name + "]\n"), "run.toml:1:"));
  EXPECT_TRUE(has(fault_of(name + " = 1\n"), "run.toml:1:"));
  EXPECT_TRUE(has(fault_of("a = " + std::string(100000, '[')), "run.toml:1:"));
}

TEST(Config, AllowsNonAsciiOnlyInStringsAndComments) {
  EXPECT_EQ(fault_of("[run]\nlabel = 'x' \xD0\x93\n"),
            "[config] non-ASCII character outside of a string, run.toml:2:13");
  EXPECT_EQ(fault_of("[run]\nseed = 1a\"\xC8\x95\"\n"), "[config] quote inside a word, run.toml:2:10");
  for (const char* text : {"a = -b[\"\"\"\xEF\xB8\xBF", "a = b=\"\xC8\x95\"", "a = b.\"\xC8\x95\"",
                           "a = [b{\"\xC8\x95\"", "a = b,\"\xC8\x95\""})
    EXPECT_TRUE(has(fault_of(text), "quote inside a word")) << text;
  EXPECT_EQ(fault_of("a = \"\"\"\\\xEF\xBB\xAF"), "[config] '\\' before a non-ASCII character, run.toml:1:9");
  EXPECT_EQ(resolve_text("\"run\".\"label\" = \"\xD0\x93\"\n").values.run.label, "\xD0\x93");
  EXPECT_EQ(resolve_text("[\"run\"]\n'label' = '\xD0\x93'\n").values.run.label, "\xD0\x93");
  EXPECT_EQ(resolve_text("run = {'label' = '\xD0\x93', seed = 2}\n").values.run.label, "\xD0\x93");
  EXPECT_EQ(fault_of("[run]\nlabel = \"\"\"a\\\n  b\"\"\"\n"), "[config] '\\' at the end of a line, run.toml:2:14");
  EXPECT_EQ(resolve_text("\xEF\xBB\xBF[run] # \xD0\x93\nlabel = \"\xD0\x93\"\n").values.run.label, "\xD0\x93");
  EXPECT_EQ(resolve_text("[run]\nlabel = \"\"\"\xD0\x93 \"x\" \\\" \"\"\"\"\n").values.run.label,
            "\xD0\x93 \"x\" \" \"");
  EXPECT_EQ(resolve_text("[run]\nlabel = \'\'\'a.b\\\'\'\'\n").values.run.label, "a.b\\");
}

TEST(Config, FileOverridesPaperTasks) {
  const auto task3 = resolve_text("[task]\nnumber = 3\n").values.task.task;
  EXPECT_EQ(task3.train.probability, 0.1);
  EXPECT_EQ(task3.test.content, GapContent::forbidden_symbol);
  const auto often = resolve_text("[task]\ngap_probability = 0.5\nnumber = 3\n");
  EXPECT_EQ(often.values.task.task.train.probability, 0.5);
  EXPECT_EQ(often.values.task.task.test.probability, 0.5);
  EXPECT_EQ(often.origins.at("task.test_gap_probability").text(), "derived from task.gap_probability");
  const auto task2 = resolve_text("[task]\nnumber = 2\ngap_max = 50\n").values.task.task;
  EXPECT_EQ(task2.train.law, GapLaw::uniform);
  EXPECT_EQ(task2.test.law, GapLaw::constant);
  EXPECT_EQ(task2.test.min, 50);
  EXPECT_EQ(task2.noise, 0.2);
  const auto apart = resolve_text("[task]\nnumber = 2\ngap_max = 50\ntest_gap_min = 20\n").values.task.task;
  EXPECT_EQ(apart.test.min, 20);
  EXPECT_EQ(resolve_text("[task]\nnumber = 4\n").values.eval.points, (std::vector<int>{10, 20, 50, 100}));
}

TEST(Config, RunSeedIsDefaultOfBothSeeds) {
  const auto config = resolve_text("[run]\nseed = 7\n[train]\nseed = 2\n");
  EXPECT_EQ(config.values.grammar.build.seed, 7U);
  EXPECT_EQ(config.values.train.seed, 2U);
  EXPECT_EQ(config.origins.at("grammar.seed").text(), "derived from run.seed");
  EXPECT_EQ(config.values.train.order_seed, 0U);  // follows nothing: by index, as published
}

TEST(Config, DerivesWarmUpAndPrecision) {
  EXPECT_EQ(resolve_text("[train]\nupdates = 100\n").values.train.warmup, 15);
  EXPECT_EQ(resolve_text("[train]\nupdates = 1\n").values.train.warmup, 0);
  EXPECT_EQ(resolve_text("[train]\ndevice = 'cuda'\n").values.train.precision, Precision::amp);
  EXPECT_EQ(resolve_text("").values.train.precision, Precision::fp32);
}

TEST(Config, OverridesAreTomlValuesOrBareWords) {
  const auto config = resolve_text("", {"model.name=mamba", "eval.gaps=[1, 2]", "train.lr=5e-4", "run.label=12",
                                        "quirks.first_lr_zero=true", "task.stream=\"direct\"", "model.d_state = 64"});
  EXPECT_EQ(config.values.model.name, "mamba");
  EXPECT_EQ(config.values.eval.points, (std::vector<int>{1, 2}));
  EXPECT_EQ(config.values.train.lr, 5e-4);
  EXPECT_EQ(config.values.run.label, "12");
  EXPECT_TRUE(config.values.quirks.first_lr_zero);
  EXPECT_EQ(config.values.task.stream, Stream::direct);
  EXPECT_EQ(config.values.model.switches.at("d_state"), "64");
  EXPECT_EQ(fault_of("", {"train"}), "[config] expected section.key=value, got --set train");
  EXPECT_EQ(fault_of("", {"lr=0.1"}), "[config] expected section.key=value, got --set lr=0.1, did you mean train.lr?");
  EXPECT_EQ(fault_of("", {"batch=8"}),
            "[config] expected section.key=value, got --set batch=8, did you mean train.batch or eval.batch?");
  EXPECT_EQ(fault_of("", {"udpates=8"}),
            "[config] expected section.key=value, got --set udpates=8, did you mean train.updates?");
  EXPECT_EQ(fault_of("", {"xyzzy=8"}), "[config] expected section.key=value, got --set xyzzy=8");
  EXPECT_EQ(fault_of("", {"train.lr=[1"}), "[config] not a TOML value, --set train.lr=[1");
  EXPECT_EQ(fault_of("", {"train.lr=fast"}),
            "[train.lr] wrong kind of value, expected a number, got 'fast', --set train.lr=fast");
  EXPECT_NE(fault_of("", {"train.lr=1\nbatch = 2"}), "");
}

class ExtendsTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) { write_file_atomically(folder_.file(name), text); }
  std::string fault(const std::string& name) {
    return error_line([&] { resolve_config(folder_.file(name), {}, rules()); });
  }
  TemporaryFolder folder_;
};

TEST_F(ExtendsTest, ExtendingFileWinsAndOriginsNameFiles) {
  std::filesystem::create_directory(folder_.file("sub"));
  write("base.toml", "[train]\nlr = 0.002\nbatch = 32\n");
  write("sub/run.toml", "extends = \"../base.toml\"\n[train]\nbatch = 16\n");
  const auto config = resolve_config(folder_.file("sub/run.toml"), {"train.updates=50"}, rules());
  EXPECT_EQ(config.values.train.lr, 0.002);
  EXPECT_EQ(config.values.train.batch, 16);
  EXPECT_EQ(config.values.train.updates, 50);
  EXPECT_EQ(config.origins.at("train.lr").text(), folder_.file("base.toml") + ":2:6");
}

TEST_F(ExtendsTest, RejectsCyclesMissingFilesAndLongChains) {
  write("a.toml", "extends = 'b.toml'\n");
  write("b.toml", "extends = './a.toml'\n");
  EXPECT_TRUE(has(fault("a.toml"), "[extends] './a.toml' extends itself, " + folder_.file("b.toml:1:11")));
  write("c.toml", "\nextends = 'missing.toml'\n");
  EXPECT_TRUE(has(fault("c.toml"), folder_.file("c.toml:2:11")));
  write("d.toml", "extends = 3\n");
  EXPECT_EQ(fault("d.toml"), "[extends] expected the name of a file, got 3, " + folder_.file("d.toml:1:11"));
  write("d.toml", "extends = ''\n");
  EXPECT_EQ(fault("d.toml"), "[extends] expected the name of a file, got '', " + folder_.file("d.toml:1:11"));
  for (int i = 0; i < 30; ++i)
    write("x" + std::to_string(i) + ".toml", "extends = 'x" + std::to_string(i + 1) + ".toml'");
  EXPECT_TRUE(has(fault("x0.toml"), "more than 16 files deep"));
  EXPECT_TRUE(has(fault("absent.toml"), "absent.toml:1:1"));
  EXPECT_TRUE(has(fault(""), ":1:1"));
  write("nul.toml", "extends = \"a\\u0000b\"\n");
  EXPECT_TRUE(has(fault("nul.toml"), "nul.toml:1:11"));
}

TEST_F(ExtendsTest, ErrorsInBaseNameBase) {
  write("base.toml", "[train]\nbatch = 10\n");
  write("run.toml", "extends = 'base.toml'\n[train]\nlr = 1\n[model]\nname = 'nothing'\n");
  EXPECT_TRUE(has(fault("run.toml"), "run.toml:5:8"));
  write("base.toml", "[train]\nbatch = 0\n");
  EXPECT_TRUE(has(fault("run.toml"), "base.toml:2:9"));
}

TEST(ConfigFaults, NameKeyOfFirstError) {
  const auto where = [](const std::string& text) {
    try {
      resolve_text(text);
    } catch (const ConfigFaults& faults) {
      return faults.first_key();
    }
    return std::string("none");
  };
  EXPECT_EQ(where("[train]\ndevice = 'cpu'\nprecision = 'amp'\n"), "train.precision");
  EXPECT_EQ(where("[model]\nname = 'transformer'\nwidth = 960\n"), "model.width") << "said by the models";
}

TEST(ConfigText, RoundTrips) {
  const auto config = resolve_text(
      "[task]\nnumber = 2\n[run]\nseed = 3\nlabel = 'a \"quoted\" label'\n"
      "[model]\nname = 'mamba'\nd_state = 32\na_min = 0.5\noutput_gate = false\n");
  for (const bool origins : {false, true}) {
    const auto again = resolve_text(config_toml(config, origins));
    EXPECT_EQ(again.canonical, config.canonical);
    EXPECT_EQ(again.run_id, config.run_id);
    EXPECT_EQ(again.values.run.label, config.values.run.label);
  }
}

TEST(ConfigText, ShowsOriginOfEachValue) {
  const auto config = resolve_text("[train]\nlr = 0.002\n", {"train.batch=8"});
  const std::string text = config_toml(config, true);
  EXPECT_TRUE(has(text, "lr = 0.002", "# run.toml:2:6", "# --set train.batch=8"));
  const auto json = nlohmann::json::parse(config_json(config));
  EXPECT_EQ(json["run_id"], config.run_id);
  EXPECT_EQ(json["values"]["train"]["lr"], 0.002);
  EXPECT_EQ(json["origins"]["train.lr"], "run.toml:2:6");
}

TEST(ConfigText, KeyTableNamesEveryParameter) {
  ModelRules with_table = rules();
  with_table.table = {{"gla", "expand_k", "1.0", "a number", "width of the keys"}};
  const std::string table = parameter_table(with_table);
  const auto json = nlohmann::json::parse(parameter_json(with_table));
  EXPECT_EQ(json.size(), config_keys().size() + own_keys().size() + 1);
  for (const auto& p : config_keys()) EXPECT_TRUE(has(table, p.name()));
  EXPECT_TRUE(has(table, "model.expand_k  gla"));
  EXPECT_EQ(json.back()["model"], "gla");
}

// A kind of task has keys of its own; those of others are refused, as switches of other models are.
TEST(TaskKind, HasItsOwnKeys) {
  const auto config = resolve_text("[task]\nkind = 'tracking'\nsensor_noise = 2\n[eval]\nmissing = [50, 0]\n");
  EXPECT_EQ(std::get<double>(config.values.task.keys.at("sensor_noise")), 2);
  for (const auto& [kind, key] : own_keys())
    EXPECT_EQ(find_config_key(key.name()), nullptr) << kind << " has a key that every config has: " << key.name();
  EXPECT_EQ(std::get<int64_t>(config.values.task.keys.at("missing")), 30);
  EXPECT_EQ(config.values.task.task.noise, 0) << "the key of gaps";
  EXPECT_EQ(config.values.task.length, 50);
  EXPECT_EQ(config.origins.at("task.length").text(), "derived from task.kind");
  EXPECT_EQ(config.values.eval.points, (std::vector<int>{0, 50}));
  EXPECT_FALSE(config.origins.contains("task.gap_min"));
  EXPECT_EQ(fault_of("[task]\nkind = 'copyng'\n"),
            "[task.kind] unknown kind 'copyng', did you mean copying?, run.toml:2:8");
  EXPECT_EQ(fault_of("[task]\nkind = 'copying'\nsymbols = 1\n"),
            "[task.symbols] out of range, expected 2..4096, got 1, run.toml:3:11");
  EXPECT_EQ(fault_of("[task]\nkind = 'copying'\ngap_min = 1\n"),
            "[task.gap_min] has no effect with task.kind = copying; keys of this kind: task.length, task.symbols, "
            "eval.lengths, run.toml:3:1");
  EXPECT_EQ(fault_of("[task]\nkind = 'copying'\n[grammar]\nvocab = 5\n"),
            "[grammar.vocab] has no effect with task.kind = copying; keys of this kind: task.length, task.symbols, "
            "eval.lengths, run.toml:4:1");
  EXPECT_EQ(fault_of("[task]\nsymbols = 4\n"),
            "[task.symbols] has no effect with task.kind = gaps; it is a key of another kind of task, run.toml:2:1");
  EXPECT_EQ(fault_of("[task]\nkind = 'copying'\n[eval]\nlengths = [4, 4]\n"),
            "[eval.lengths] expected different values, got one twice, run.toml:4:11");
}

TEST(TaskKind, CannotTakeNamesOfTheProgram) {
  std::set<std::string> task, eval;
  for (const auto& key : config_keys()) {
    if (key.section == "task") task.insert(key.key);
    if (key.section == "eval") eval.insert(key.key);
  }
  const auto reserved = [](const std::vector<std::string>& names) {
    return std::set<std::string>(names.begin(), names.end());
  };
  EXPECT_EQ(reserved(reserved_task_keys()), task);
  EXPECT_EQ(reserved(reserved_eval_keys()), eval);
}

TEST(TaskKind, IsPartOfTheIdUnlessItIsGaps) {
  const auto id = [](const std::string& text) { return resolve_text(text).run_id; };
  EXPECT_EQ(id("[task]\nkind = 'gaps'\nnumber = 1\n"), id("[task]\nnumber = 1\n"));
  EXPECT_TRUE(lacks(resolve_text("").canonical, "kind"));
  const std::string plain = id("[task]\nkind = 'copying'\n");
  EXPECT_NE(plain, id("[task]\nkind = 'tracking'\n"));
  EXPECT_EQ(plain, id("[task]\nkind = 'copying'\nsymbols = 8\nlength = 10\n"));
  EXPECT_NE(plain, id("[task]\nkind = 'copying'\nsymbols = 9\n"));
  EXPECT_NE(plain, id("[task]\nkind = 'copying'\n[grammar]\nseed = 2\n"));
  EXPECT_NE(plain, id("[task]\nkind = 'copying'\n[eval]\nlengths = [3]\n"));
  EXPECT_TRUE(lacks(resolve_text("[task]\nkind = 'copying'\n").canonical, "vocab"));
}

TEST(TaskKind, ItsConfigReadsBackAsItself) {
  for (const char* text : {"", "[task]\nkind = 'copying'\nsymbols = 5\n[eval]\nlengths = [7]\n",
                           "[task]\nkind = 'tracking'\ndecay = 0.25\n"}) {
    const auto config = resolve_text(text);
    for (const bool origins : {false, true})
      EXPECT_EQ(resolve_text(config_toml(config, origins)).canonical, config.canonical);
    EXPECT_TRUE(nlohmann::json::accept(config_json(config)));
  }
  const std::string table = parameter_table({});
  EXPECT_TRUE(has(table, "eval.lengths", "number of different symbols"));
}

TEST(TaskKind, ASuiteCrossesItsKeys) {
  const Suite suite =
      parse_suite("[task]\nkind = 'copying'\n[grid]\ntask.symbols = [4, 6]\ntask.length = [3, 5]\n", "s.toml", {}, {});
  ASSERT_EQ(suite.runs.size(), 4U);
  EXPECT_EQ(value_text(suite.runs[3], "task.symbols"), "6");
  EXPECT_EQ(varying_keys(suite.runs), (std::vector<std::string>{"task.length", "task.symbols"}));
}

TEST(TaskFile, ItsContentIsPartOfTheIdAndItsPathIsNot) {
  const TemporaryFolder folder;
  const std::string one = folder.file("one.txt"), two = folder.file("two.txt"), toml = folder.file("run.toml");
  const std::string content(9000, 'x');
  for (const std::string& path : {one, two}) write_file_atomically(path, content);
  write_file_atomically(toml, "[task]\nkind = 'text'\nfile = 'one.txt'\n");
  const auto config = resolve_config(toml, {}, {});
  EXPECT_EQ(std::get<std::string>(config.values.task.keys.at("file")), one) << "relative to the config";
  EXPECT_EQ(config.values.task.files.at("file")->bytes, content);
  EXPECT_TRUE(lacks(config.canonical, "one.txt"));
  EXPECT_EQ(resolve_config(toml, {"task.file=" + two}, {}).run_id, config.run_id);
  EXPECT_EQ(resolve_text(config_toml(config, false)).run_id, config.run_id) << "from another folder";
  write_file_atomically(two, content + "y");
  EXPECT_NE(resolve_config(toml, {"task.file=" + two}, {}).run_id, config.run_id);

  const Suite suite =
      parse_suite("[task]\nkind = 'text'\n[grid]\ntask.file = ['one.txt', 'two.txt']\n", folder.file("s.toml"), {}, {});
  ASSERT_EQ(suite.runs.size(), 2U);
  EXPECT_EQ(suite.runs[0].run_id, config.run_id);
  EXPECT_NE(suite.runs[1].run_id, config.run_id);
}

TEST(DataIdentity, DependsOnAllThatChangesSamplesAndOnNothingElse) {
  const auto identity = [](const std::vector<std::string>& set) {
    return data_identity(resolve_text("[task]\nnumber = 2\n[train]\nupdates = 100\n", set).values);
  };
  const std::string plain = identity({});
  for (const char* other :
       {"model.width=32", "train.lr=0.1", "train.updates=50", "eval.test_samples=7", "train.seed=3"})
    EXPECT_EQ(identity({other}), plain) << other;
  for (const char* other : {"grammar.seed=3", "grammar.vocab=42", "task.length=99", "task.noise=0.3", "task.gap_max=11",
                            "task.test_gap_min=9", "task.objective=predict", "task.stream=direct", "eval.gaps=[3]",
                            "train.schedule={task.gap_max = {from = 2, over = 1}}"})
    EXPECT_NE(identity({other}), plain) << other;
  EXPECT_NE(identity({"train.schedule={task.gap_max = {from = 2, over = 1}}"}),
            identity({"train.schedule={task.gap_max = {from = 2, over = 1}}", "train.updates=50"}));
}

TEST(TaskFile, AMissingOneIsOneLine) {
  EXPECT_EQ(fault_of("[task]\nkind = 'text'\n"),
            "[task.file] expected the path of a file, --set task.file=PATH, run.toml:1:1");
  const std::string line = fault_of("[task]\nkind = 'text'\nfile = '/no/such.txt'\n");
  EXPECT_TRUE(has(line, "[task.file] ", "/no/such.txt", ", run.toml:3:8")) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  EXPECT_TRUE(has(fault_of("[task]\nkind = 'text'\nfile = 3\n"), "[task.file] wrong kind of value"));
  EXPECT_TRUE(has(fault_of("[task]\nkind = 'text'\nfile = '/'\n"), "[task.file] "));
}

}  // namespace
}  // namespace sb::test
