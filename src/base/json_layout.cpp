#include "base/json_layout.h"

namespace sb {

std::string json_laid_out(std::string_view json) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  std::string out;
  out.reserve(json.size() + json.size() / 4);
  int depth = 0;
  bool in_text = false, opened = false;  // opened: the last character that counts was a bracket
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      out += c;
      if (c == '\\' && i + 1 < json.size()) out += json[++i];
      in_text = c != '"';
      continue;
    }
    if (is_space(c)) continue;
    const bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
    if (closes) --depth;
    if (opened && !closes && depth == 1) out += "\n  ";
    if (!opened && closes && depth == 0) out += "\n";
    out += c;
    if (c == ',') out += depth == 1 ? "\n  " : " ";
    if (c == ':') out += " ";
    if (opens) ++depth;
    opened = opens;
    in_text = c == '"';
  }
  return out + "\n";
}

}  // namespace sb
