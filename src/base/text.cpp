#include "base/text.h"

#include <algorithm>

namespace sb {

std::string printable(std::string_view text, size_t limit) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    if (out.size() >= limit) return out + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

size_t display_width(std::string_view utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TextTable::TextTable(std::vector<std::string> header, std::vector<Align> align)
    : header_(std::move(header)), align_(std::move(align)) {}

void TextTable::row(std::vector<std::string> cells) {
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<size_t> width;
  const auto measure = [&](const std::vector<std::string>& cells) {
    width.resize(std::max(width.size(), cells.size()), 0);
    for (size_t i = 0; i < cells.size(); ++i) width[i] = std::max(width[i], display_width(cells[i]));
  };
  measure(header_);
  for (const auto& cells : rows_) measure(cells);

  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string space(width[i] - display_width(cells[i]), ' ');
      const bool left = i < align_.size() ? align_[i] == Align::left : i == 0;
      if (i > 0) text += "  ";
      text += left ? cells[i] + space : space + cells[i];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  if (!header_.empty()) {
    line(header_);
    std::vector<std::string> rule;
    for (const size_t w : width) rule.emplace_back(w, '-');
    line(rule);
  }
  for (const auto& cells : rows_) line(cells);
  return out;
}

}  // namespace sb
