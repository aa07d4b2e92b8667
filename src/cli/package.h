// Commands of the Python package.
#pragma once
#include <string>
#include <vector>

namespace sb::cli {

// Becomes `python -m selectivbench words…`: exit code, signals and terminal are Python's from here on. Throws bad_input
// if the interpreter or the package is missing.
[[noreturn]] void become_package(const std::string& command, const std::string& python, std::vector<std::string> words);

}  // namespace sb::cli
