#include "findings/page_text.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (c == '|' || c == '<' || c == '*' || c == '_' || c == '`') out += '\\';
    out += c;
  }
  return out;
}

std::string code(const std::string& text) {
  std::string out = one_line(text);
  std::replace(out.begin(), out.end(), '`', '\'');
  std::replace(out.begin(), out.end(), '|', '/');
  return "`" + out + "`";
}

std::string share(double value) {
  std::string out = fixed(std::abs(value), 3);
  if (out.starts_with("0.")) out.erase(0, 1);
  return value < 0 && out != ".000" ? "−" + out : out;
}

std::string signed_points(double value) {
  return formatted("{}{}", value < 0 ? "−" : "+", fixed(std::abs(value) * 100, 1));
}

std::string and_list(const std::vector<std::string>& parts) {
  if (parts.size() < 2) return joined(parts, "");
  return joined(std::vector<std::string>(parts.begin(), parts.end() - 1), ", ") + " and " + parts.back();
}

std::string bullets(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += "- " + line + "\n";
  return out;
}

std::string heading_anchor(const std::string& heading) {
  std::string out;
  for (const char c : heading)
    if (c == ' ' || c == '-')
      out += '-';
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80) != 0)
      out += c;
    else if (c >= 'A' && c <= 'Z')
      out += static_cast<char>(c + 32);
  return out;
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

}  // namespace sb
