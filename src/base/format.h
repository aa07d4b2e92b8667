// fmt's formatting, compiled once, in format.cpp. Callers only gather the arguments, for which fmt's small header is
// enough.
#pragma once
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <type_traits>

namespace sb {

std::string format_arguments(fmt::string_view text, fmt::format_args values);

// Like fmt::format; the format string is checked against the arguments at compile time.
template <class... Values>
std::string formatted(fmt::format_string<Values...> text, Values&&... values) {
  return format_arguments(text, fmt::make_format_args(values...));
}

// Joins the elements, each formatted as by `{}`.
template <class Range>
std::string joined(const Range& elements, std::string_view between) {
  std::string out;
  bool first = true;
  for (const auto& element : elements) {
    if (!first) out += between;
    first = false;
    if constexpr (std::is_convertible_v<decltype(element), std::string_view>)
      out += std::string_view(element);
    else
      out += formatted("{}", element);
  }
  return out;
}

}  // namespace sb
