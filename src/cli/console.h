// Where people watch: standard error, a terminal or not. Tests put their own clock, size and sink in its place.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sb::cli {

struct Console {
  bool terminal = false;
  std::function<double()> clock;                     // seconds, never backwards
  std::function<std::pair<int, int>()> size;         // columns and rows of the terminal, as they are now
  std::function<void(std::string_view text)> write;  // whole or not at all matters to nobody here
};
Console standard_error();

// At most `columns` characters, the last one … where something was lost.
std::string cut(const std::string& line, int columns);

// Lines that redraw themselves below what was said. Elsewhere than on a terminal only what is said appears.
class LiveLines {
 public:
  explicit LiveLines(Console console) : console_(std::move(console)) {}
  ~LiveLines() { show({}); }
  LiveLines(const LiveLines&) = delete;
  LiveLines& operator=(const LiveLines&) = delete;

  void show(const std::vector<std::string>& lines);
  void say(const std::string& line);
  const Console& console() const { return console_; }
  double said_at() const { return said_at_; }  // when the last line was said; -1: none

 private:
  std::string erased(int columns);

  Console console_;
  std::vector<std::string> drawn_;  // as cut
  int columns_ = 0, rows_ = 0;      // when they were drawn
  double said_at_ = -1;
};

}  // namespace sb::cli
