#include "base/crc32.h"

#include <array>

namespace sb {
namespace {

// table[k][b]: the effect of byte b followed by k zero bytes. Eight tables allow eight bytes per step.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> table{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xEDB88320U ^ (c >> 1) : c >> 1;
    table[0][b] = c;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t b = 0; b < 256; ++b) table[k][b] = table[0][table[k - 1][b] & 255] ^ (table[k - 1][b] >> 8);
  }
  return table;
}();

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t size) {
  const auto* p = static_cast<const uint8_t*>(data);
  crc = ~crc;
  for (; size >= 8; p += 8, size -= 8) {
    const uint32_t low = crc ^ (p[0] | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16 |
                                static_cast<uint32_t>(p[3]) << 24);
    crc = kTables[7][low & 255] ^ kTables[6][low >> 8 & 255] ^ kTables[5][low >> 16 & 255] ^ kTables[4][low >> 24] ^
          kTables[3][p[4]] ^ kTables[2][p[5]] ^ kTables[1][p[6]] ^ kTables[0][p[7]];
  }
  for (; size > 0; ++p, --size) crc = kTables[0][(crc ^ *p) & 255] ^ (crc >> 8);
  return ~crc;
}

}  // namespace sb
