#include "base/spreadsheet.h"

#include "base/number.h"

namespace sb {

std::string spreadsheet_safe(std::string_view text) {
  const bool runs = !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  return (runs && !parse_finite(text) ? "'" : "") + std::string(text);
}

}  // namespace sb
