// 128-bit unsigned arithmetic, which ISO C++ has no name for.
#pragma once
#include <cstdint>

namespace sb {

__extension__ using uint128 = unsigned __int128;

constexpr uint64_t high64(uint128 v) {
  return static_cast<uint64_t>(v >> 64);
}
constexpr uint64_t low64(uint128 v) {
  return static_cast<uint64_t>(v);
}

}  // namespace sb
