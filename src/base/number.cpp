#include "base/number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace sb {
namespace {

template <class T>
std::optional<T> parse_all(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

void append_shortest(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific).ptr;
  std::string_view all(text.data(), static_cast<size_t>(end - text.data()));
  if (all.front() == '-') {
    out += '-';
    all.remove_prefix(1);
  }
  const size_t e = all.find('e');
  const int exponent = std::atoi(all.data() + e + 1);
  std::string digits(1, all.front());
  if (e > 2) digits += all.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out.append(".").append(digits, 1);
    out += all.substr(e);
  } else if (exponent < 0) {
    out.append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
  } else if (count <= exponent + 1) {
    out.append(digits).append(static_cast<size_t>(exponent + 1 - count), '0').append(".0");
  } else {
    const auto whole = static_cast<size_t>(exponent + 1);
    out.append(digits, 0, whole).append(".").append(digits, whole);
  }
}

std::string shortest(double value) {
  std::string text;
  append_shortest(text, value);
  return text;
}

void append_integer(std::string& out, uint64_t value) {
  char text[20];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  out.append(text, end);
}

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return shortest(value);
  std::array<char, 400> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals).ptr;
  return {text.data(), end};
}

std::string grouped(uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string bytes_text(double bytes) {
  static constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fixed(bytes, unit == 0 ? 0 : 1) + " " + kUnits[unit];
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e12) return "?";
  if (seconds < 0.9995) return fixed(seconds * 1e3, seconds < 0.01 ? 2 : 0) + " ms";
  if (seconds < 99.95) return fixed(seconds, 1) + " s";
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  const uint64_t minutes = whole / 60 % 60;
  return grouped(whole / 3600) + " h " + (minutes < 10 ? "0" : "") + std::to_string(minutes) + " min";
}

std::optional<uint64_t> parse_unsigned(std::string_view text) {
  return parse_all<uint64_t>(text);
}

std::optional<int64_t> parse_integer(std::string_view text) {
  return parse_all<int64_t>(text);
}

std::optional<double> parse_finite(std::string_view text) {
  const auto value = parse_all<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace sb
