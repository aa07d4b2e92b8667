// JSON as this program writes it: nlohmann's values, members in insertion order, numbers formatted by shortest().
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sb {

using Json = nlohmann::ordered_json;

// Writes one line. NaN and infinities become null; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const Json& value);
// Writes members and elements of the outer `levels` on separate lines and deeper ones inline. Ends in a line break.
std::string json_document(const Json& value, int levels = 1);

std::string json_quoted(std::string_view text);  // a string, with quotes

}  // namespace sb
