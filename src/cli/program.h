// The program: its commands, and how a failure becomes one line and an exit code.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/arguments.h"

namespace sb::cli {

// What a failure is to whoever started the program.
struct Failure {
  Exit code;
  std::string line;
};
Failure failure_of(const std::exception& error);

class Program {
 public:
  Program();
  ~Program();

  // `path`: "grammar", or "bench data" for a command within a group. `examples` end the command's --help.
  Arguments& command(const std::string& path, const std::string& what, const std::vector<std::string>& examples,
                     std::function<Exit()> action);
  // What a group of commands is for; before the first of them. `action`: what it does by its own name alone.
  Arguments& group(const std::string& name, const std::string& what, std::function<Exit()> action = {});
  int run(int argc, const char* const* argv);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sb::cli
