// Text for terminals: what others wrote made safe to print, and aligned tables.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sb {

// Control bytes and bytes beyond ASCII as \xNN, cut at `limit` characters: safe inside a one-line message.
std::string printable(std::string_view text, size_t limit = 60);

// Any length on one line: UTF-8 stays, but control characters, those that reorder text, and bytes that are no UTF-8
// become \xNN. For file names and whole messages.
std::string one_line(std::string_view text);

// Columns padded to their widest cell; the first is left-aligned, the others right-aligned unless said.
class TextTable {
 public:
  enum class Align { left, right };
  explicit TextTable(std::vector<std::string> header, std::vector<Align> align = {});
  void row(std::vector<std::string> cells);  // each through one_line
  std::string text() const;                  // lines ending in '\n', a rule under the header; no header: no rule

 private:
  std::vector<std::string> header_;
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;
};

size_t display_width(std::string_view utf8);  // code points

std::string counted(size_t count, const std::string& what);  // "1 run", "2 runs"

// The parts between these characters: one more than there are of them.
std::vector<std::string> split(std::string_view text, char at);
// The last line that is not blank, whole; "" where there is none.
std::string last_line(std::string_view text);

}  // namespace sb
