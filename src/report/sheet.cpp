#include "report/sheet.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/format.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr size_t widest_text = 150;  // characters before columns go into a table of their own
using Lines = std::vector<std::string>;

// Splits a wide table into parts, each a list of column indices: the labels, then as many blocks as fit.
std::vector<std::vector<size_t>> parts_of(const Sheet& sheet, const std::vector<size_t>& width) {
  std::vector<size_t> labels;
  size_t label_width = 0;
  for (size_t i = 0; i < sheet.columns.size(); ++i)
    if (sheet.columns[i].block == 0) {
      labels.push_back(i);
      label_width += width[i] + 2;
    }
  std::vector<std::vector<size_t>> parts = {labels};
  size_t used = label_width;
  for (size_t i = 0; i < sheet.columns.size();) {
    if (sheet.columns[i].block == 0) {
      ++i;
      continue;
    }
    size_t end = i, block_width = 0;
    for (; end < sheet.columns.size() && sheet.columns[end].block == sheet.columns[i].block; ++end)
      block_width += width[end] + 2;
    if (used + block_width > widest_text && parts.back().size() > labels.size()) {
      parts.push_back(labels);
      used = label_width;
    }
    for (size_t k = i; k < end; ++k) parts.back().push_back(k);
    used += block_width;
    i = end;
  }
  return parts;
}

class TextSheet {
 public:
  explicit TextSheet(const Sheet& sheet) : sheet_(sheet) {
    for (size_t i = 0; i < sheet.columns.size(); ++i) {
      size_t w = 1;
      for (const auto& line : sheet.columns[i].header) w = std::max(w, display_width(line));
      for (const auto* rows : {&sheet.rows, &sheet.foot})
        for (const auto& row : *rows) w = std::max(w, display_width(row[i]));
      width_.push_back(w);
    }
  }

  std::string write() {
    const auto parts = parts_of(sheet_, width_);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) out_ += "\n";
      write_part(parts[i], i == 0);
    }
    return std::move(out_);
  }

 private:
  template <class Cell>
  void line(const std::vector<size_t>& part, const Cell& cell) {
    std::string text;
    for (size_t k = 0; k < part.size(); ++k) {
      const std::string content = cell(part[k]);
      const std::string space(width_[part[k]] - std::min(width_[part[k]], display_width(content)), ' ');
      text += (k > 0 ? "  " : "") + (sheet_.columns[part[k]].left ? content + space : space + content);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out_ += text + "\n";
  }

  void rule(const std::vector<size_t>& part) {
    line(part, [&](size_t i) { return std::string(width_[i], '-'); });
  }

  bool has_figures(const std::vector<std::string>& row, const std::vector<size_t>& part) const {
    return std::any_of(part.begin(), part.end(),
                       [&](size_t i) { return sheet_.columns[i].block != 0 && !row[i].empty(); });
  }

  // Without rows that have figures in other parts only; a row without any figure is in the first part.
  void write_part(const std::vector<size_t>& part, bool first) {
    std::vector<size_t> all(sheet_.columns.size());
    std::iota(all.begin(), all.end(), size_t{0});
    const auto shown = [&](const std::vector<std::string>& row) {
      return has_figures(row, part) || (first && !has_figures(row, all));
    };
    size_t height = 1;
    for (const size_t i : part) height = std::max(height, sheet_.columns[i].header.size());
    for (size_t h = 0; h < height; ++h)
      line(part, [&](size_t i) {  // short headers are aligned to the bottom
        const Lines& header = sheet_.columns[i].header;
        const size_t above = height - header.size();
        return h < above ? std::string() : header[h - above];
      });
    rule(part);
    for (const auto& row : sheet_.rows)
      if (shown(row)) line(part, [&](size_t i) { return row[i]; });
    if (!sheet_.foot.empty()) rule(part);
    for (const auto& row : sheet_.foot) line(part, [&](size_t i) { return row[i]; });
  }

  const Sheet& sheet_;
  std::vector<size_t> width_;
  std::string out_;
};

bool word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string markdown_escaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool inside_word = c == '_' && i > 0 && i + 1 < text.size() && word(text[i - 1]) && word(text[i + 1]);
    if (std::string_view("\\`*_{}[]<>|#~$!&").find(c) != std::string_view::npos && !inside_word) out += '\\';
    out += c;
  }
  return out;
}

std::string latex_escaped(const std::string& text) {
  static const std::map<char, std::string> names = {{'\\', "backslash"}, {'~', "asciitilde"}, {'^', "asciicircum"},
                                                    {'<', "less"},       {'>', "greater"},    {'|', "bar"},
                                                    {'"', "quotedbl"}};
  std::string out;
  for (const char c : text) {
    if (const auto named = names.find(c); named != names.end())
      out += "\\text" + named->second + "{}";
    else
      out += (std::string_view("&%$#_{}").find(c) == std::string_view::npos ? "" : "\\") + std::string(1, c);
  }
  for (const auto& [from, to] : {std::pair{"±", "$\\pm$"}, {"≤", "$\\leq$"}, {"≥", "$\\geq$"}, {"–", "--"}})
    out = replace_all(out, from, to);
  return out;
}

std::string escaped_lines(const Lines& lines, const std::string& between, std::string (*escape)(const std::string&)) {
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? between : "") + escape(lines[i]);
  return out;
}

}  // namespace

std::string text_sheet(const Sheet& sheet) {
  std::string out;
  for (const auto& line : sheet.head) out += line + "\n";
  if (!sheet.head.empty()) out += "\n";
  out += TextSheet(sheet).write();
  for (const auto& note : sheet.beneath) out += "note: " + note + "\n";
  if (!sheet.caption.empty()) out += "\n";
  for (const auto& line : sheet.caption) out += line + "\n";
  for (const auto& note : sheet.notes) out += "note: " + note + "\n";
  return out;
}

std::string markdown_sheet(const Sheet& sheet) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string out = "|";
    for (const auto& c : cells) out += " " + c + " |";
    return out + "\n";
  };
  std::vector<std::string> header;
  std::string rule = "|";
  for (const auto& column : sheet.columns) {
    header.push_back(escaped_lines(column.header, "<br>", markdown_escaped));
    rule += column.left ? "---|" : "---:|";
  }
  std::string out;
  for (const auto& text : sheet.head) out += markdown_escaped(text) + "\n";
  if (!sheet.head.empty()) out += "\n";
  out += line(header) + rule + "\n";
  for (const auto* rows : {&sheet.rows, &sheet.foot})
    for (const auto& row : *rows) {
      std::vector<std::string> cells;
      for (const auto& cell : row) cells.push_back(markdown_escaped(cell));
      out += line(cells);
    }
  if (!sheet.beneath.empty()) out += "\n";
  for (const auto& note : sheet.beneath) out += "- " + markdown_escaped(note) + "\n";
  if (!sheet.caption.empty()) out += "\n";
  for (const auto& text : sheet.caption) out += markdown_escaped(text) + "\n";
  if (!sheet.notes.empty()) out += "\n";
  for (const auto& note : sheet.notes) out += "- " + markdown_escaped(note) + "\n";
  return out;
}

std::string latex_sheet(const Sheet& sheet) {
  std::string out;
  for (const auto& text : sheet.head) out += "% " + text + "\n";
  out += "% \\usepackage{booktabs}\n\\begin{tabular}{";
  for (const auto& column : sheet.columns) out += column.left ? 'l' : 'r';
  out += "}\n\\toprule\n";
  const auto line = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) out += (i > 0 ? " & " : "") + cells[i];
    out += " \\\\\n";
  };
  std::vector<std::string> header;
  for (const auto& column : sheet.columns) {
    const std::string text = escaped_lines(column.header, " \\\\ ", latex_escaped);
    header.push_back(column.header.size() < 2 ? text
                                              : "\\begin{tabular}[b]{@{}" + std::string(column.left ? "l" : "r") +
                                                    "@{}}" + text + "\\end{tabular}");
  }
  line(header);
  const auto part = [&](const std::vector<std::vector<std::string>>& rows) {
    if (rows.empty()) return;
    out += "\\midrule\n";
    for (const auto& row : rows) {
      std::vector<std::string> cells;
      for (const auto& cell : row) cells.push_back(latex_escaped(cell));
      if (!cells.empty() && cells[0].starts_with("[")) cells[0] = "{}" + cells[0];  // else \\ takes it as an argument
      line(cells);
    }
  };
  part(sheet.rows);
  part(sheet.foot);
  out += "\\bottomrule\n\\end{tabular}\n";
  for (const auto& note : sheet.beneath) out += "% note: " + note + "\n";
  for (const auto& text : sheet.caption) out += "% " + text + "\n";
  for (const auto& note : sheet.notes) out += "% note: " + note + "\n";
  return out;
}

}  // namespace sb
