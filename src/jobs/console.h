// Lines for people, on a terminal or not. The program supplies the output function; tests supply their own.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sb {

struct Console {
  bool terminal = false;
  std::function<double()> clock;                     // seconds, monotonic
  std::function<std::pair<int, int>()> size;         // current columns and rows of the terminal
  std::function<void(std::string_view text)> write;  // errors are ignored
};
// Cuts the line to at most `columns` characters; the last one is … if something was cut.
std::string cut(const std::string& line, int columns);

// Lines at the bottom of a terminal that are redrawn in place, below printed lines. Without a terminal, only printed
// lines appear.
class LiveLines {
 public:
  explicit LiveLines(Console console) : console_(std::move(console)) {}
  ~LiveLines() { show({}); }
  LiveLines(const LiveLines&) = delete;
  LiveLines& operator=(const LiveLines&) = delete;

  void show(const std::vector<std::string>& lines);
  void say(const std::string& line);
  const Console& console() const { return console_; }
  double said_at() const { return said_at_; }  // time of the last printed line; -1: none

 private:
  std::string erased(int columns);

  Console console_;
  std::vector<std::string> drawn_;  // cut to the width
  int columns_ = 0, rows_ = 0;      // terminal size when they were drawn
  double said_at_ = -1;
};

}  // namespace sb
