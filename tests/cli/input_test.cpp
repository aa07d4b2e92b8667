// Bad input gets one clear line on standard error, nothing on standard output, and exit code 2.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "program_run.h"

namespace sb::test {
namespace {

void refused(const std::vector<std::string>& arguments, const std::string& says) {
  const Outcome outcome = run(arguments);
  std::string shown;
  for (const auto& argument : arguments) shown += argument + " ";
  EXPECT_EQ(outcome.code, 2) << shown << outcome.err;
  EXPECT_EQ(outcome.out, "") << shown;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << shown << outcome.err;
  EXPECT_EQ(outcome.err.substr(0, 1), "[") << outcome.err;
  EXPECT_NE(outcome.err.find(says), std::string::npos)
      << shown << "\nexpected to read: " << says << "\ngot: " << outcome.err;
}

TEST(InvalidOptions, AreReportedWithNearestValidName) {
  refused({"gramar"}, "did you mean grammar?");
  refused({"grammar", "--vocb", "3"}, "did you mean --vocab?");
  refused({"generate", "--digst"}, "did you mean --digest?");
  refused({"bench", "dat"}, "did you mean data?");
  refused({"generate", "--stream", "refrence", "--digest"}, "did you mean reference?");
  refused({"generate", "--split", "tset", "--digest"}, "did you mean test?");
  refused({"ceiling", "--gap-law", "unifrom"}, "did you mean uniform?");
  refused({}, "expected grammar, generate, show, ceiling");
  refused({"bench"}, "a command is missing");
  refused({"--nonsense"}, "unknown option '--nonsense'; `selectivbench --help` lists the options");
  refused({"grammar", "--nosuch"}, "[grammar] unknown option '--nosuch'; `selectivbench grammar --help` lists");
  refused({"grammar", "stray"}, "unexpected argument 'stray'");
  refused({"show", "-x"}, "unknown option '-x'");
}

TEST(BenchData, MeasuresEitherEverythingOrConfigs) {
  refused({"bench", "data", "--set", "task.length=9"}, "[bench data --set] requires --config");
  refused({"bench", "data", "--config", "dyck", "--threads", "1"}, "cannot be combined with --threads");
  refused({"bench", "data", "--config", "dyk"}, "dyck");
  refused({"bench", "data", "--config", "dyck", "--set", "task.depth=0"}, "[task.depth]");
}

TEST(InvalidValues, AreReportedWithValidRange) {
  refused({"grammar", "--vocab", "abc"}, "[grammar --vocab] expected a whole number from 2");
  refused({"grammar", "--vocab", "-3"}, "got '-3'");
  refused({"grammar", "--vocab", "99999999999"}, "got '99999999999'");
  refused({"grammar", "--vocab", "4.5"}, "got '4.5'");
  refused({"grammar", "--vocab", ""}, "got ''");
  refused({"grammar", "--seed", "99999999999999999999"}, "18446744073709551615");
  refused({"grammar", "--seed", "-1"}, "got '-1'");
  refused({"grammar", "--seed", "0x10"}, "got '0x10'");
  refused({"grammar", "--seed"}, "expected a value, got none");
  refused({"grammar", "--seed", "1", "--seed", "2"}, "--seed");
  refused({"grammar", "--density", "nan"}, "[grammar --density]");
  refused({"grammar", "--density", "2"}, "[grammar --density]");
  refused({"generate", "--count", "0", "--digest"}, "[generate --count]");
  refused({"generate", "--length", "0", "--digest"}, "[generate --length]");
  refused({"generate", "--task", "5", "--digest"}, "0 to 4");
  refused({"generate", "--gap-probability", "1.5", "--digest"}, "[generate --gap-probability]");
  refused({"generate", "--threads", "-1", "--digest"}, "[generate --threads]");
  refused({"generate", "--task", "2", "--gap-min", "12", "--gap-max", "3", "--digest"}, "gap");
  refused({"generate", "--task", "2", "--gap-min", "12", "--digest"},
          "[task.gap_min] gap_min (12) > gap_max (10), --gap-min 12");
  refused({"ceiling", "--task", "3", "--length", "20"},
          "[task.gap_start] expected at most length (20), got 50, --length 20");
  refused({"ceiling", "--gap-mu", "99"}, "-20.0 to 20.0");
  refused({"generate", "--format", "csv", "--digest"}, "expected jsonl or npz");
  refused({"generate", "--count", "3"}, "[generate --out]");
  refused({"generate", "--digest", "--out", "x"}, "--digest writes no file");
  refused({"generate", "--start", "18446744073709551615", "--digest"}, "2^64");
  refused({"generate", "--format", "npz", "--count", "1000000000", "--out", "x"}, "4 GiB");
  refused({"generate", "--dense", "--count", "1", "--out", "x"}, "requires --format npz");
  refused({"generate", "--dense", "--format", "npz", "--digest"}, "got --digest");
  refused({"generate", "--dense", "--format", "npz", "--task", "2", "--count", "20000", "--out", "x"}, "4 GiB");
  refused({"show", "--from", "200"}, "[show --from]");
  refused({"show", "--color", "red"}, "expected auto, always or never");
}

TEST(OptionsWithoutEffect, AreRejectedWithRequiredOption) {
  refused({"generate", "--task", "1", "--gap-max", "5", "--digest"},
          "[generate --gap-max] has no effect with --gap-law constant; requires --gap-law uniform or lognormal");
  refused({"generate", "--gap-max", "5", "--digest"}, "has no effect with --gap-law none");
  refused({"ceiling", "--task", "2", "--gap-mu", "1"}, "requires --gap-law lognormal");
  refused({"show", "--objective", "predict"}, "[show --objective] has no effect");
}

TEST(OptionsWithoutEffect, AreRejectedIfOutputDoesNotDependOnThem) {
  const auto generate = [](const std::vector<std::string>& options, const std::string& says) {
    refused(std::vector<std::string>{"generate", "--count", "1"} + options, says);
  };
  generate({"--task", "1", "--noise", "0.5", "--out", "x"}, "[generate --noise] has no effect on symbols and gaps");
  generate({"--task", "1", "--objective", "predict", "--out", "x"}, "[generate --objective] has no effect");
  generate({"--task", "1", "--digest"}, "[generate --task] has no effect on --digest");
  generate({"--gap-law", "constant", "--digest"}, "[generate --gap-law] has no effect on --digest");
  generate({"--format", "npz", "--digest"}, "[generate --format] has no effect on --digest");
  refused({"ceiling", "--train-samples", "5"}, "[ceiling --train-samples] has no effect without --baselines");
}

TEST(OtherKinds, RejectWhatTheyDoNotHaveInOneLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"ceiling --kind copying --baselines",
       "[ceiling --baselines] no baselines: n-grams cannot answer --kind copying"},
      {"ceiling --kind copying --vocab 5", "[ceiling --vocab] has no effect with --kind copying"},
      {"ceiling --kind copying --task 2", "[ceiling --task] has no effect with --kind copying"},
      {"ceiling --kind tracking --at 101", "[ceiling --at] expected 0..100, got 101"},
      {"ceiling --kind tracking --split reference", "expected train, valid or test"},
      {"ceiling --kind copying --set task.noise=1", "[task.noise] has no effect with task.kind = copying"},
      {"ceiling --kind copying --set train.lr=1", "expected task.KEY=VALUE"},
      {"ceiling --kind tracking --split train --at 3", "has no effect on --split train"},
      {"show --kind copying --length 5 --set task.length=7", "task.length and --length were both given"},
      {"ceiling --set task.symbols=3", "requires --kind"},
      {"ceiling --at 3", "requires --kind"},
      {"show --kind copyng", "copying"},
      {"show --kind copying --length 3 --from 6", "[show --from] expected an element below the 6 of the sample, got 6"},
      {"show --kind tracking --automaton x.json", "[show --automaton] has no effect with --kind tracking"},
      {"generate --kind copying --out x.jsonl", "[generate --kind] writes samples of gaps only, got copying"},
  };
  for (const auto& [arguments, expected] : cases) refused(words(arguments), expected);
  const TemporaryFolder folder;
  const std::string corpus = folder.file("corpus.txt");
  std::ofstream(corpus) << std::string(100'000, 'a');
  refused({"ceiling", "--kind", "text", "--set", "task.file=" + corpus, "--baselines"},
          "[ceiling --baselines] kind text has n-grams but no ceiling");
}

TEST(OtherKinds, ShowOfTextHasCharactersAndMarksSpans) {
  const TemporaryFolder folder;
  const std::string corpus = folder.file("corpus.txt");
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += "to be\n";
  std::ofstream(corpus) << text;
  const Outcome shown = run({"show", "--kind", "text", "--set", "task.file=" + corpus, "--set",
                             "task.span_probability=0.3", "--elements", "60", "--color", "never"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  for (const char* part : {" t ", " · ", " \\x0a ", "[t]"})
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << "\n" << shown.out;
  EXPECT_EQ(shown.out.find(" 116 "), std::string::npos) << shown.out;
}

TEST(OptionsWithAnEffect, AreAcceptedAtAnyValue) {
  const auto taken = [](const std::vector<std::string>& arguments) { EXPECT_TRUE(exits(run(arguments + kSmall), 0)); };
  taken({"generate", "--count", "2", "--task", "2", "--gap-min", "1", "--out", "-"});
  taken({"generate", "--count", "2", "--task", "2", "--split", "test", "--gap-max", "10", "--out", "-"});
  taken({"generate", "--count", "2", "--task", "1", "--split", "test", "--gap-min", "1", "--out", "-"});
  taken({"generate", "--count", "2", "--split", "valid", "--gap-law", "constant", "--out", "-"});
  taken({"generate", "--count", "2", "--task", "2", "--noise", "0.2", "--objective", "state", "--dense", "--format",
         "npz", "--out", "/dev/null"});
  taken({"ceiling", "--samples", "2", "--task", "2", "--gap-max", "10"});
  taken({"ceiling", "--samples", "2", "--task", "2", "--baselines", "--train-samples", "5", "--gap-min", "2"});
  taken({"ceiling", "--samples", "2", "--noise", "0", "--objective", "state"});
}

TEST(Ceiling, HasNoStandardErrorForOneSample) {
  for (const char* objective : {"state", "predict"}) {
    const std::vector<std::string> ask = {"ceiling", "--objective", objective};
    EXPECT_NE(run(ask + std::vector<std::string>{"--samples", "2"} + kSmall).out.find("standard error"),
              std::string::npos);
    const Outcome one = run(ask + std::vector<std::string>{"--samples", "1"} + kSmall);
    EXPECT_EQ(one.out.find("standard error"), std::string::npos) << one.out;
    EXPECT_EQ(run(ask + std::vector<std::string>{"--samples", "1", "--json", "-"} + kSmall).out.find("stderr"),
              std::string::npos);
  }
}

TEST(Rank, LeavesTheDeviceToThePackage) {
  const std::string python = testing::TempDir() + "/python_that_prints";
  std::ofstream(python) << "#!/bin/sh\necho \"$@\"\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const std::vector<std::string> rank = {"rank", "a.py:A", "--python", python};
  EXPECT_EQ(run(rank).out.find("--device"), std::string::npos) << run(rank).out;
  EXPECT_NE(run(rank + std::vector<std::string>{"--device", "cuda"}).out.find("--device=cuda"), std::string::npos);
}

TEST(Rank, SaysWhichPythonOrPackageIsMissing) {
  refused({"rank"}, "[rank] FILE:NAME is required");
  refused({"rank", "a.py:A", "--python", "/no/such/python"}, "[rank --python] cannot start '/no/such/python'");
  refused({"rank", "a.py:A", "--python", "false"}, "[rank --python] 'false' cannot import the package selectivbench");
  refused({"rank", "a.py:A", "--residual", "pst"}, "did you mean post?");
  refused({"submit"}, "[submit] DIR is required");
  refused({"submit", "a", "--python", "/no/such/python"}, "[submit --python] cannot start '/no/such/python'");
}

TEST(ImpossibleGrammars, AreRejectedWithViolatedConstraint) {
  refused({"grammar", "--vocab", "6", "--ambiguities", "6"}, "ambiguities");
  refused({"grammar", "--depth", "0"}, "--depth");
  refused({"grammar", "--density", "0"}, "density");
  refused({"grammar", "--vocab", "3", "--ambiguities", "0", "--depth", "1"}, "start");
  refused({"generate", "--seed", "0", "--digest"}, "seed 0");
  refused({"generate", "--length", "1", "--count", "1", "--digest"}, "length");
}

TEST(ErrorMessages, EscapeControlCharacters) {
  refused({"grammar", "--vocab", "\x1b[31m"}, "\\x1b[31m");
  refused({"\x1b]0;title\x07"}, "\\x1b]0;title\\x07");
}

TEST(Automaton, RejectsInvalidFiles) {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder.file(name)) << content;
    return folder.file(name);
  };
  refused({"grammar", "--automaton", folder.file("missing")}, "missing: No such file");
  refused({"grammar", "--automaton", folder.path()}, "cannot read");
  refused({"grammar", "--automaton", file("empty", "")}, "not JSON");
  refused({"generate", "--digest", "--automaton",
           file("nan", R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, NaN]]})")},
          "not JSON");
  refused({"ceiling", "--automaton", file("deep", std::string(1000000, '['))}, "expected an object, got an array");
  refused({"show", "--automaton",
           file("ok", R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})"), "--vocab", "5"},
          "cannot be combined with --automaton");
}

}  // namespace
}  // namespace sb::test
