// Streaming SHA-256: add bytes in portions of any size, read the digest once.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sb {

class Sha256 {
 public:
  void update(const void* data, size_t size);
  void update(std::string_view text) { update(text.data(), text.size()); }
  std::string hex();  // ends the stream: 64 lower-case digits

 private:
  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> tail_{};
  uint64_t bytes_ = 0;
};

std::string sha256_hex(std::string_view text);
std::string sha256_bytes(std::string_view text);  // the digest as 32 raw bytes

}  // namespace sb
