// Recorded draws: the file as JSON and the number forms it uses.
#pragma once
#include <cstdlib>

#include "golden_json.h"
#include "random/wide.h"

namespace sb::test {

inline uint64_t u64(const nlohmann::json& text) {
  return std::stoull(text.get<std::string>());
}
inline double from_hex(const nlohmann::json& text) {
  return std::strtod(text.get<std::string>().c_str(), nullptr);
}

// Decimal or 0x-hexadecimal text; digits past 128 bits are lost, which no caller asks for.
inline uint128 u128(const nlohmann::json& json) {
  const auto text = json.get<std::string>();
  const bool hex = text.starts_with("0x");
  uint128 value = 0;
  for (const char c : text.substr(hex ? 2 : 0)) {
    value = value * (hex ? 16U : 10U) + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return value;
}

// A decimal number of any size as 32-bit words, least significant first.
inline std::vector<uint32_t> decimal_words(const std::string& text) {
  std::vector<uint32_t> words{0};
  for (const char c : text) {
    uint64_t carry = static_cast<uint64_t>(c - '0');
    for (uint32_t& w : words) {
      carry += uint64_t{w} * 10;
      w = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) words.push_back(static_cast<uint32_t>(carry));
  }
  return words;
}

// Pins a long list by one number: the sum of (position + 1) * value.
inline std::string weighted_sum(const std::vector<uint32_t>& values) {
  uint64_t sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += (i + 1) * values[i];
  return std::to_string(sum);
}

inline std::vector<uint32_t> head(const std::vector<uint32_t>& values, size_t n) {
  return {values.begin(), values.begin() + static_cast<long>(std::min(n, values.size()))};
}

}  // namespace sb::test
