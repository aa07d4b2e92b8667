#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/number.h"

namespace sb {

namespace {

void append_escaped(std::string& out, unsigned char byte) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// Length in bytes of the UTF-8 character at the start, 0 if it is invalid; sets its code point.
size_t decode(std::string_view text, uint32_t& point) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) {
    point = byte(0);
    return 1;
  }
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  point = byte(0) & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    point = point << 6 | (byte(i) & 0x3FU);
  }
  const uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  const bool surrogate = point >= 0xD800 && point < 0xE000;
  return point < least || point > 0x10FFFF || surrogate ? 0 : length;
}

// C0 and C1 controls, line and paragraph separators, and direction marks and overrides.
bool steers_a_terminal(uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x061C || (point >= 0x200E && point <= 0x200F) ||
         (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    uint32_t point = 0;
    const size_t length = decode(text, point);
    const std::string_view here = text.substr(0, std::max<size_t>(1, length));
    if (length > 0 && !steers_a_terminal(point)) {
      out += here;
    } else {
      for (const char c : here) append_escaped(out, static_cast<unsigned char>(c));
    }
    text.remove_prefix(here.size());
  }
  return out;
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (const char c : text) {
    if (out.size() >= limit) return out + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      append_escaped(out, byte);
    }
  }
  return out;
}

size_t display_width(std::string_view utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TextTable::TextTable(std::vector<std::string> header, std::string align)
    : header_(std::move(header)), align_(std::move(align)) {}

void TextTable::row(std::vector<std::string> cells) {
  for (auto& cell : cells) cell = one_line(cell);
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
      const bool left = i < align_.size() ? align_[i] == 'l' : i == 0;
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

std::string counted(size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from)) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(at, from), text.size());
    out.emplace_back(text.substr(from, end - from));
    from = end + 1;
  }
  return out;
}

std::string last_line(std::string_view text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return "";
  const size_t before = text.rfind('\n', end);  // none: npos, one before the first character
  return std::string(text.substr(before + 1, end - before));
}

std::string xml_escaped(std::string_view text) {
  std::string out(text);
  for (const auto& [from, to] : {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}})
    out = replace_all(out, from, to);
  return out;
}

std::string spreadsheet_safe(std::string_view text) {
  const bool runs = !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  return (runs && !parse_finite(text) ? "'" : "") + std::string(text);
}

}  // namespace sb
