// The program: its commands, and the conversion of failures to one line and an exit code.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/arguments.h"

namespace sb::cli {

// A failure as the user sees it.
struct Failure {
  Exit code;
  std::string line;
};
Failure failure_of(const std::exception& error);

class Program {
 public:
  Program();
  ~Program();

  // `path`: "grammar", or "bench data" for a command in a group. `examples` are shown at the end of --help.
  Arguments& command(const std::string& path, const std::string& what, const std::vector<std::string>& examples,
                     std::function<Exit()> action);
  // Adds a group of commands; call before the first of its commands. `action` runs if the group is called without a
  // command.
  Arguments& group(const std::string& name, const std::string& what, std::function<Exit()> action = {});
  // Commands that only another build has: naming one is an error with this reason.
  void absent(const std::vector<std::string>& paths, const std::string& why);
  int run(int argc, const char* const* argv);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sb::cli
