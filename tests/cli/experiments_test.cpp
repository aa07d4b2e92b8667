// `experiments verdict` and `experiments findings` as a user meets them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "program_run.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

TEST(Verdict, RejectsEmptyFolder) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--scale", "small", "--format", "json"}}) {
    std::vector<std::string> arguments = {"experiments", "verdict", "gates", folder.path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err,
              "[experiments verdict DIR] expected runs below the folder, got none, " + folder.path() + "\n");
  }
}

TEST(Verdict, StartsWithOneLinePerClaim) {
  const Outcome outcome = run({"experiments", "verdict", "main_table", SB_SOURCE_DIR "/results"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string head = outcome.out.substr(0, outcome.out.find("\n\n", outcome.out.find("\n\n") + 2));
  EXPECT_TRUE(head.starts_with("Main table\n")) << head;
  std::istringstream lines(head);
  std::string line, claims;
  while (std::getline(lines, line))
    if (line.find("  undecided") != std::string::npos) claims += line + "\n";
  EXPECT_NE(claims.find("Gates help recall"), std::string::npos) << head;
  EXPECT_NE(claims.find("Attention leads tasks 2 and 3"), std::string::npos) << head;
  EXPECT_NE(head.find("no usable runs ("), std::string::npos) << head;
  EXPECT_EQ(head.find("95 % interval"), std::string::npos) << "tables come below";
}

TEST(Verdict, RejectsUnknownArgumentsInOneLine) {
  const TemporaryFolder folder;
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"gate", folder.path()},
           {"../experiments/claims", folder.path()},
           {"claims", folder.path()},
           {"gates", folder.file("absent")},
           {"gates"},
           {"gates", folder.path(), "--scale", "huge"},
           {"gates", folder.path(), "--format", "xml"},
           {"gates", folder.path(), "--claims", folder.file("absent.toml")},
       }) {
    const Outcome outcome = run(std::vector<std::string>{"experiments", "verdict"} + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments[0] << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("[")) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Verdict, NamesModelsWithoutRunsAndMissingChoices) {
  const TemporaryFolder folder;
  const auto notes = [&](const std::string& head, const std::string& model) {
    std::ofstream(folder.file("mine.toml")) << head << "[[scale]]\nname = 'quick'\n[[claim]]\nid = 'c'\ntitle = 't'\n"
                                            << "sentence = 'x'\ncomparisons = [{a = '" << model << "', b = 'mamba'}]\n";
    const Outcome outcome = run(
        {"experiments", "verdict", "c", SB_SOURCE_DIR "/results/quick.tar.gz", "--claims", folder.file("mine.toml")});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err;
  };
  const std::string choices = "[choices]\ngrammar_seed = 11\nscale = 'quick'\n";
  EXPECT_EQ(notes(choices, "gla"), "");
  EXPECT_EQ(notes(choices, "glaa"), "note: no run has the model 'glaa', did you mean gla?\n");
  EXPECT_NE(notes("", "gla").find("mine.toml has no [choices]"), std::string::npos);
}

TEST(Findings, AreWrittenAndChecked) {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("results"));
  fs::copy(SB_SOURCE_DIR "/results/paper.tar.gz", folder.file("results"));
  const std::string readme = folder.file("README.md"), page = folder.file("findings.md");
  std::ofstream(readme)
      << "top\n<!-- results: `selectivbench experiments findings` writes this table -->\n<!-- /results -->\nend\n";
  const std::vector<std::string> command = {"experiments", "findings", "--results", folder.file("results"),
                                            "--out",       page,       "--readme",  readme};
  EXPECT_TRUE(exits(run(command + std::vector<std::string>{"--check"}), 1, "findings.md"));
  EXPECT_FALSE(fs::exists(page));
  EXPECT_EQ(run(command).code, 0);
  EXPECT_EQ(run(command + std::vector<std::string>{"--check"}).code, 0);
  EXPECT_NE(whole_file(readme).find("| Transformer | .860 |"), std::string::npos) << whole_file(readme);
  EXPECT_TRUE(whole_file(page).starts_with("# Findings\n"));
  std::ofstream(page, std::ios::app) << "typed by hand\n";
  EXPECT_EQ(run(command + std::vector<std::string>{"--check"}).code, 1);
}

TEST(Findings, ReplaceLinksAndWriteFiguresBeforePage) {
  const TemporaryFolder folder;
  fs::create_directories(folder.file("results"));
  fs::copy(SB_SOURCE_DIR "/results/paper.tar.gz", folder.file("results"));
  const auto written_to = [&](const std::string& page) {
    return run({"experiments", "findings", "--results", folder.file("results"), "--out", page});
  };
  ASSERT_EQ(written_to(folder.file("a/findings.md")).code, 0);
  const std::string figure = fs::directory_iterator(folder.file("a/findings"))->path().filename().string();
  fs::create_directories(folder.file("b/findings"));
  std::ofstream(folder.file("mine")) << "mine";
  fs::create_symlink(folder.file("mine"), folder.file("b/findings/" + figure));
  ASSERT_EQ(written_to(folder.file("b/findings.md")).code, 0);
  EXPECT_EQ(whole_file(folder.file("mine")), "mine");
  EXPECT_EQ(whole_file(folder.file("b/findings/" + figure)), whole_file(folder.file("a/findings/" + figure)));
  fs::create_directories(folder.file("c/findings/" + figure));  // a folder cannot be replaced
  EXPECT_NE(written_to(folder.file("c/findings.md")).code, 0);
  EXPECT_FALSE(fs::exists(folder.file("c/findings.md"))) << "a page without its figures";
  const Outcome nowhere = written_to("/dev/null/x/f.md");
  EXPECT_EQ(nowhere.code, 74);
  EXPECT_TRUE(nowhere.err.starts_with("[experiments findings --out] cannot make /dev/null/x")) << nowhere.err;
}

// Regression: an empty page used to overwrite the findings.
TEST(Findings, KeepOldPageIfResultsAreMissingOrDamaged) {
  const TemporaryFolder folder;
  const std::string page = folder.file("findings.md"), archive = folder.file("results/paper.tar.gz");
  fs::create_directory(folder.file("results"));
  std::ofstream(page) << "what there was";
  const std::vector<std::string> command = {"experiments",          "findings", "--results",
                                            folder.file("results"), "--out",    page};
  EXPECT_TRUE(exits(run(command), 2, "expected finished runs below the folder, got none"));
  fs::copy(SB_SOURCE_DIR "/results/quick.tar.gz", folder.file("results"));
  fs::copy(SB_SOURCE_DIR "/results/paper.tar.gz", archive);
  fs::resize_file(archive, fs::file_size(archive) / 2);
  const Outcome damaged = run(command);
  EXPECT_TRUE(exits(damaged, 2, "expected intact runs and archives, got left out, damaged"));
  EXPECT_EQ(whole_file(page), "what there was");
  EXPECT_TRUE(exits(run({"experiments", "verdict", "task3", folder.file("results")}), 0, "note: left out, damaged"));
}

TEST(Findings, RejectPageWithoutMarkersAndMissingResults) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("README.md")) << "no markers\n";
  EXPECT_EQ(run({"experiments", "findings", "--results", folder.path(), "--out", folder.file("f.md"), "--readme",
                 folder.file("README.md")})
                .code,
            2);
  EXPECT_FALSE(fs::exists(folder.file("f.md"))) << "nothing is written where a part of it cannot be";
  EXPECT_EQ(run({"experiments", "findings", "--results", folder.file("absent"), "--out", folder.file("f.md")}).code, 2);
}

}  // namespace
}  // namespace sb::test
