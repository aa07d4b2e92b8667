// Reads numpy's .npy: the header and a view of the values.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sb {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct NpyArray {
  char kind = 0;  // 'u', 'i', 'f', …
  int width = 0;  // bytes per value, in little-endian order
  std::vector<uint64_t> shape;
  std::string_view values;  // part of the bytes that were parsed
};

// Throws bad_input "[npy] PATH: …" unless the bytes are one array of plain numbers in C order.
NpyArray parse_npy(std::string_view bytes, const std::string& path);

}  // namespace sb
