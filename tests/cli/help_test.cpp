#include <gtest/gtest.h>

#include <algorithm>

#include "base/version.h"
#include "program_run.h"

namespace sb::test {
namespace {

TEST(Help, EveryCommandExplainsItselfWithAnExample) {
  for (const auto& command : std::vector<std::vector<std::string>>{{},
                                                                   {"grammar"},
                                                                   {"generate"},
                                                                   {"show"},
                                                                   {"ceiling"},
                                                                   {"bench"},
                                                                   {"bench", "data"},
                                                                   {"table"},
                                                                   {"check"},
                                                                   {"pack"},
                                                                   {"rank"},
                                                                   {"report"},
                                                                   {"submit"},
                                                                   {"watch"},
                                                                   {"experiments", "verdict"},
                                                                   {"experiments", "findings"}}) {
    const Outcome outcome = run(command + std::vector<std::string>{"--help"});
    std::string path = "selectivbench";
    for (const auto& word : command) path += " " + word;
    EXPECT_EQ(outcome.code, 0) << path;
    EXPECT_EQ(outcome.err, "") << path;
    EXPECT_NE(outcome.out.find("Usage: " + path), std::string::npos) << outcome.out;
    const size_t example = outcome.out.find("Example");
    ASSERT_NE(example, std::string::npos) << path;
    EXPECT_NE(outcome.out.find(path, example), std::string::npos) << path;
  }
}

// The examples must work. Numbers that only make them slow are reduced.
TEST(Help, ExamplesRun) {
  const TemporaryFolder folder;
  for (const auto& command : std::vector<std::vector<std::string>>{
           {"grammar"}, {"generate"}, {"show"}, {"ceiling"}, {"bench", "data"}, {"report"}}) {
    std::string help = run(command + std::vector<std::string>{"--help"}).out;
    help.erase(0, help.find("Example"));
    for (size_t at = help.find("selectivbench "); at != std::string::npos; at = help.find("selectivbench ", at + 1)) {
      std::istringstream line(help.substr(at + 14, help.find('\n', at) - at - 14));
      std::vector<std::string> arguments;
      for (std::string word; line >> word;) {
        const std::string before = arguments.empty() ? "" : arguments.back();
        if (before == "--out" || before == "--svg" || before == "--figures" || (before == "--json" && word != "-"))
          word = folder.file(word);
        if (word.starts_with("runs/") || word.starts_with("results/")) word = SB_SOURCE_DIR "/results/paper.tar.gz";
        if (before == "--count" || before == "--samples") word = "300";
        arguments.push_back(word);
      }
      if (command.front() == "bench" && arguments.size() == 2)
        arguments = arguments + std::vector<std::string>{"--samples", "300"};
      if (command.front() == "report" && std::count(arguments.begin(), arguments.end(), "--out") == 0)
        arguments = arguments + std::vector<std::string>{"--out", folder.file("report.html")};
      if (command.front() == "ceiling") arguments = arguments + std::vector<std::string>{"--samples", "100"};
      if (std::count(arguments.begin(), arguments.end(), "--baselines") > 0) {
        arguments = arguments + std::vector<std::string>{"--train-samples", "100"};
      }
      const Outcome outcome = run(arguments);
      EXPECT_EQ(outcome.code, 0) << help.substr(at, help.find('\n', at) - at) << "\n" << outcome.err;
    }
  }
}

TEST(Version, PrintsVersionAndProcessorInOneLine) {
  const Outcome outcome = run({"--version"});
  EXPECT_EQ(outcome.code, 0);
  const std::string begin = std::string("selectivbench ") + program_version() + ", compiled for ";
  EXPECT_TRUE(outcome.out.starts_with(begin) && outcome.out.size() > begin.size() + 1) << outcome.out;
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1);
}

TEST(Show, PrintsSymbolStateGapAndBelief) {
  const Outcome outcome = run(
      std::vector<std::string>{"show", "--task", "3", "--gap-start", "0", "--gap-probability", "1", "--elements", "5"} +
      kSmall);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 8) << outcome.out;
  EXPECT_NE(outcome.out.find("filter believes"), std::string::npos);
}

TEST(Show, ColoursOnlyOnRequestOrTerminal) {
  const std::vector<std::string> show = std::vector<std::string>{"show"} + kSmall;
  EXPECT_EQ(run(show).out.find('\x1b'), std::string::npos) << "a file is no terminal";
  EXPECT_EQ(run(show + std::vector<std::string>{"--color", "never"}).out.find('\x1b'), std::string::npos);
  EXPECT_NE(run(show + std::vector<std::string>{"--color", "always"}).out.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace sb::test
