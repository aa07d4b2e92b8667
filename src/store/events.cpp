#include "store/events.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

namespace sb {
namespace {

static_assert(std::endian::native == std::endian::little, "records are written in the order of memory");

constexpr std::array<uint32_t, 256> crc_table = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78U : crc >> 1;
    table[i] = crc;
  }
  return table;
}();

// Protocol buffers: a field is its number and wire type (0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes).
enum Wire : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <class T>
void append_raw(std::string& out, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out.append(raw, sizeof(T));
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_key(std::string& out, uint32_t field, Wire wire) {
  append_varint(out, uint64_t{field} << 3 | wire);
}

void append_bytes(std::string& out, uint32_t field, std::string_view content) {
  append_key(out, field, bytes);
  append_varint(out, content.size());
  out += content;
}

void append_record(std::string& out, std::string_view data) {
  const uint64_t length = data.size();
  append_raw(out, length);
  append_raw(out, masked_crc32c(&length, sizeof(length)));
  out += data;
  append_raw(out, masked_crc32c(data.data(), data.size()));
}

// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
std::string event_start(double wall) {
  std::string event;
  append_key(event, 1, fixed64);
  append_raw(event, wall);
  return event;
}

// Summary { repeated Value value = 1; }  Value { string tag = 1; float simple_value = 2; }
std::string summary(const MetricRow& row) {
  std::string out;
  for (const auto& [name, value] : row.values) {
    if (!std::isfinite(value)) continue;
    std::string scalar;
    append_bytes(scalar, 1, row.phase.empty() ? name : row.phase + "/" + name);
    append_key(scalar, 2, fixed32);
    append_raw(scalar, static_cast<float>(value));
    append_bytes(out, 1, scalar);
  }
  return out;
}

}  // namespace

uint32_t crc32c(const void* data, size_t size) {
  uint32_t crc = 0xFFFFFFFFU;
  const auto* byte = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) crc = crc >> 8 ^ crc_table[(crc ^ byte[i]) & 0xFF];
  return ~crc;
}

uint32_t masked_crc32c(const void* data, size_t size) {
  return std::rotr(crc32c(data, size), 15) + 0xA282EAD8U;
}

std::string encode_events(const std::vector<MetricRow>& rows, const std::vector<MetricRow>& timing) {
  std::map<std::pair<int64_t, std::string_view>, double> times;
  double first = 0;
  for (const auto& row : timing) {
    for (const auto& [name, value] : row.values) {
      if (name != "wall" || !std::isfinite(value)) continue;
      first = times.empty() ? value : std::min(first, value);
      times[{row.update, row.phase}] = value;
    }
  }
  std::string out;
  std::string version = event_start(first);
  append_bytes(version, 3, "brain.Event:2");
  append_record(out, version);
  double wall = first;
  for (const auto& row : rows) {
    if (const auto own = times.find({row.update, row.phase}); own != times.end()) wall = own->second;
    std::string event = event_start(wall);
    append_key(event, 2, varint);
    append_varint(event, static_cast<uint64_t>(row.update));
    append_bytes(event, 5, summary(row));
    append_record(out, event);
  }
  return out;
}

}  // namespace sb
