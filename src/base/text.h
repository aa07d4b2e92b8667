// Text for terminals: makes untrusted text safe to print, and aligns tables.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sb {

// Escapes control bytes and non-ASCII bytes as \xNN and cuts at `limit` characters: safe inside a one-line message.
std::string printable(std::string_view text, size_t limit = 60);

// Escapes control characters, characters that reorder text and invalid UTF-8 as \xNN; keeps other UTF-8. The result is
// one line of any length. For file names and whole messages.
std::string one_line(std::string_view text);

// Table with columns padded to their widest cell. `align` has an 'l' or 'r' per column; by default the first column is
// left-aligned and the others right-aligned.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header, std::string align = {});
  void row(std::vector<std::string> cells);  // each cell passes through one_line()
  std::string text() const;                  // lines end in '\n'; a rule follows the header, if there is one

 private:
  std::vector<std::string> header_;
  std::string align_;
  std::vector<std::vector<std::string>> rows_;
};

size_t display_width(std::string_view utf8);  // code points

std::string counted(size_t count, const std::string& what);  // "1 run", "2 runs"

std::string replace_all(std::string_view text, std::string_view from, std::string_view to);
// Without spaces and tabs at both ends.
std::string_view trimmed(std::string_view text);
// Splits at every `at`: n separators give n + 1 parts.
std::vector<std::string> split(std::string_view text, char at);
// The last line that is not blank, without trailing spaces; "" if there is none.
std::string last_line(std::string_view text);

std::string xml_escaped(std::string_view text);  // & < > " as entities
// Text for a CSV cell: a leading apostrophe keeps spreadsheets from running text that begins with = + - @, tab or
// carriage return. Numbers stay as they are.
std::string spreadsheet_safe(std::string_view text);

}  // namespace sb
