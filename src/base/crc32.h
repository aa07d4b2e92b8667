// CRC-32 of zip files (polynomial 0xEDB88320), continued from `crc` (0 to begin).
#pragma once
#include <cstddef>
#include <cstdint>

namespace sb {

uint32_t crc32(uint32_t crc, const void* data, size_t size);

}  // namespace sb
