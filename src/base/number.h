// Numbers to text and back, without locale and without loss.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sb {

// The shortest text that parses back to the same double, formatted as Python's repr: 0.1, 1.0, 1e-05, 1e+16, nan, -inf.
std::string shortest(double value);
void append_shortest(std::string& out, double value);
void append_integer(std::string& out, uint64_t value);

std::string fixed(double value, int decimals);  // 3.142
std::string grouped(uint64_t value);            // 1,234,567
std::string bytes_text(double bytes);           // 80.0 MB (powers of ten)
std::string duration_text(double seconds);      // 820 ms, 12.3 s, 3 min 20 s, 2 h 05 min

// Parse the whole text; nullopt on `+`, spaces, overflow or trailing text. The signed types accept `-`.
std::optional<uint64_t> parse_unsigned(std::string_view text);
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_finite(std::string_view text);

}  // namespace sb
