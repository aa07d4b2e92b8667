#include "jobs/console.h"

#include <algorithm>

#include "base/text.h"

namespace sb {

std::string cut(const std::string& line, int columns) {
  if (columns < 1) return "";
  if (display_width(line) <= static_cast<size_t>(columns)) return line;
  size_t end = 0;
  for (int left = columns - 1; end < line.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(line[end]) & 0xC0) != 0x80;
    if (begins && left-- == 0) break;
  }
  return line.substr(0, end) + "…";
}

// If the terminal was made narrower, drawn lines are wrapped and occupy more rows.
std::string LiveLines::erased(int columns) {
  int rows = 0;
  for (const auto& line : drawn_) rows += std::max(1, (static_cast<int>(display_width(line)) + columns - 1) / columns);
  drawn_.clear();
  return rows == 0 ? "" : "\r\x1b[" + std::to_string(rows) + "A\x1b[J";
}

void LiveLines::show(const std::vector<std::string>& lines) {
  if (!console_.terminal || (lines.empty() && drawn_.empty())) return;
  const auto [columns, rows] = console_.size();
  std::vector<std::string> now;
  const size_t most = static_cast<size_t>(std::max(1, rows - 1));
  for (const auto& line : lines) {
    const bool last = now.size() + 1 == most && lines.size() > most;
    now.push_back(cut(last ? "  … " + std::to_string(lines.size() - now.size()) + " more" : line, columns - 1));
    if (last) break;
  }
  if (now == drawn_ && columns == columns_ && rows == rows_) return;
  std::string text = erased(std::max(1, columns));
  for (const auto& line : now) text += line + "\n";
  console_.write(text);
  drawn_ = std::move(now);
  columns_ = columns;
  rows_ = rows;
}

void LiveLines::say(const std::string& line) {
  const std::vector<std::string> below = drawn_;
  show({});
  console_.write(one_line(line) + "\n");
  said_at_ = console_.clock();
  show(below);
}

}  // namespace sb
