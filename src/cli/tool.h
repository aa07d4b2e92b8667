// Programs of others, started by their arguments: no shell sees them.
#pragma once
#include <string>
#include <vector>

namespace sb::cli {

struct ToolOutput {
  bool found = false;  // the program could be started
  int code = 0;        // 128 + signal where one ended it
  std::string out, err;
};

// Looked for on the PATH; standard input is empty. One that takes longer than `seconds` is killed.
ToolOutput run_tool(const std::vector<std::string>& arguments, double seconds);
// Of what it wrote to standard error, or else its exit code: one line for a message.
std::string complaint_of(const ToolOutput& output);
// The same with the tool's name before it, once.
std::string complaint_of(const ToolOutput& output, const std::string& tool);

// One word for a POSIX shell, whatever is in it.
std::string shell_quoted(const std::string& text);
std::string shell_line(const std::vector<std::string>& arguments);

}  // namespace sb::cli
