#pragma once
#include <string>
#include <string_view>

namespace sb {

// Text for a CSV cell: a leading apostrophe keeps spreadsheets from running text that begins with = + - @, tab or
// carriage return. Numbers stay as they are.
std::string spreadsheet_safe(std::string_view text);

}  // namespace sb
