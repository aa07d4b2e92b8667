// Runs external programs by argument list, without a shell.
#pragma once
#include <string>
#include <vector>

namespace sb {

struct ToolOutput {
  bool found = false;  // the program could be started
  int code = 0;        // 128 + signal if a signal ended it
  std::string out, err;
};

// Searches the program on the PATH; its standard input is empty. Kills it after `seconds`.
ToolOutput run_tool(const std::vector<std::string>& arguments, double seconds);
// One line for a message: from its standard error, else its exit code.
std::string complaint_of(const ToolOutput& output);
// The same, prefixed once with the name of the tool.
std::string complaint_of(const ToolOutput& output, const std::string& tool);

// Quotes any text as one word for a POSIX shell.
std::string shell_quoted(const std::string& text);
std::string shell_line(const std::vector<std::string>& arguments);

}  // namespace sb
