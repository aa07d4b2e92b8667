// All output goes through these functions: results to standard output, everything else to standard error.
#pragma once
#include <string>
#include <string_view>

namespace sb::cli {

void print(std::string_view text);
void finish_output();                         // throws cannot_write if standard output failed
void complain(std::string_view line);         // to standard error, always as one line
void complain_of_all(std::string_view list);  // a list of errors "[where] what", one per line
void write_error(std::string_view text);      // to standard error, unchanged

// Prints to standard output if `destination` is "-", otherwise writes a file atomically.
void deliver(const std::string& destination, std::string_view content);
// The result of a command with --json DESTINATION: delivers the JSON if a destination is given, and prints the text
// unless the JSON goes to standard output.
void deliver_both(const std::string& destination, std::string_view json, std::string_view text);

// Colours for text: --color always | never | auto (a terminal, NO_COLOR not set).
class Palette {
 public:
  explicit Palette(const std::string& mode);
  bool on() const { return on_; }
  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }
  std::string good(std::string_view text) const { return paint("32", text); }
  std::string bad(std::string_view text) const { return paint("1;31", text); }
  std::string symbol(int symbol, std::string_view text) const;  // one hue per class

 private:
  std::string paint(std::string_view code, std::string_view text) const;
  bool on_;
};

}  // namespace sb::cli
