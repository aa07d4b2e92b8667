#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "config/config_file.h"

namespace sb {
namespace {

// One spelling for each value: 2, 2.0 and "2" are the same.
std::string spelled_once(const std::string& text) {
  if (const auto whole = parse_integer(text)) return std::to_string(*whole);
  const auto real = parse_finite(text);
  if (!real) return text;
  if (*real == static_cast<double>(static_cast<int64_t>(std::clamp(*real, -1e15, 1e15))))
    return std::to_string(static_cast<int64_t>(*real));
  return shortest(*real);
}

}  // namespace

std::string switch_text(const std::string& key, const TomlValue& value) {
  if (const auto* truth = std::get_if<bool>(&value.content)) return *truth ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value.content)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value.content)) return spelled_once(shortest(*real));
  if (const auto* text = value.text(); text && text->size() <= 4096 && text->find('\0') == std::string::npos)
    return spelled_once(*text);
  throw bad_input("model." + printable(key), formatted("wrong kind of value, expected a number, a boolean or "
                                                       "text, got {}, {}",
                                                       kind_name(value), value.place.text()));
}

}  // namespace sb
