#include "cli/package.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/text.h"
#include "cli/output.h"
#include "jobs/tool.h"

namespace sb::cli {
namespace {

constexpr double kSecondsToImport = 60;  // without torch; a loaded machine may need some

// The package and the interpreter are the user's: says which of them is missing.
void expect_package(const std::string& where, const std::string& python) {
  const ToolOutput output = run_tool({python, "-c", "import selectivbench.peers"}, kSecondsToImport);
  if (!output.found) throw bad_input(where, "cannot start '" + printable(python, 400) + "': " + output.err);
  if (output.code != 0)
    throw bad_input(where, "'" + printable(python, 400) + "' cannot import the package selectivbench (" +
                               complaint_of(output) + "); docs/python.md says how to install it");
}

}  // namespace

void become_package(const std::string& command, const std::string& python, std::vector<std::string> words) {
  const std::string where = command + " --python";
  expect_package(where, python);
  words.insert(words.begin(), {python, "-m", "selectivbench"});
  std::vector<char*> list;
  for (auto& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  finish_output();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvp(list[0], list.data());
  throw bad_input(where, "cannot start '" + printable(python, 400) + "': " + std::strerror(errno));
}

}  // namespace sb::cli
