#include "base/npz.h"

#include <bit>
#include <initializer_list>
#include <stdexcept>

#include "base/crc32.h"
#include "base/error.h"

namespace sb {
namespace {

static_assert(std::endian::native == std::endian::little, "npy members are written in memory order");

constexpr uint64_t kLargest = 0xFFFFFFFFULL;
constexpr uint64_t kHeaderRoom = 4096;  // upper bound of the zip and npy headers of one member
constexpr uint16_t kZipVersion = 20;
constexpr uint16_t kSizesFollow = 1 << 3;  // CRC and size stand after the data, so that it can be streamed
constexpr uint16_t kDosDate = 0x21;        // 1 January 1980: equal arrays give equal bytes

struct Field {
  uint64_t value;
  int bytes;
};

std::string little_endian(std::initializer_list<Field> fields) {
  std::string out;
  for (const auto& [value, bytes] : fields) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
  }
  return out;
}

std::string npy_header(const char* type, const std::vector<uint64_t>& shape) {
  std::string dict = std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (";
  for (const uint64_t n : shape) dict += std::to_string(n) + ", ";
  if (shape.size() > 1) dict.resize(dict.size() - 2);
  dict += "), }";
  const size_t preamble = 10;
  dict.append(63 - (preamble + dict.size()) % 64, ' ');
  dict += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + little_endian({{dict.size(), 2}}) + dict;
}

}  // namespace

void NpzWriter::raw(std::string_view bytes) {
  sink_.write(bytes.data(), bytes.size());
  offset_ += bytes.size();
}

void NpzWriter::begin(const std::string& name, const char* type, size_t item, const std::vector<uint64_t>& shape) {
  end_member();
  uint64_t size = item;
  for (const uint64_t n : shape) {
    if (n != 0 && size > kLargest / n) throw bad_input("npz", "array '" + name + "' passes 4 GiB");
    size *= n;
  }
  if (offset_ + size + kHeaderRoom > kLargest) throw bad_input("npz", "array '" + name + "' passes 4 GiB");

  Member member{name + ".npy", 0, 0, static_cast<uint32_t>(offset_)};
  raw(little_endian({{0x04034b50, 4},
                     {kZipVersion, 2},
                     {kSizesFollow, 2},
                     {0, 2},
                     {0, 2},
                     {kDosDate, 2},
                     {0, 4},
                     {0, 4},
                     {0, 4},
                     {member.name.size(), 2},
                     {0, 2}}) +
      member.name);
  members_.push_back(member);
  open_ = true;
  const std::string header = npy_header(type, shape);
  expected_ = header.size() + size;
  write_bytes(header.data(), header.size());
}

void NpzWriter::write_bytes(const void* data, size_t size) {
  if (!open_ || size > expected_) throw std::logic_error("npz: more data than the shape allows");
  Member& member = members_.back();
  member.crc = crc32(member.crc, data, size);
  member.size += static_cast<uint32_t>(size);
  expected_ -= size;
  raw({static_cast<const char*>(data), size});
}

void NpzWriter::end_member() {
  if (!open_) return;
  if (expected_ != 0) throw std::logic_error("npz: less data than the shape holds");
  const Member& member = members_.back();
  raw(little_endian({{0x08074b50, 4}, {member.crc, 4}, {member.size, 4}, {member.size, 4}}));
  open_ = false;
}

void NpzWriter::finish() {
  end_member();
  const uint64_t directory = offset_;
  for (const auto& member : members_) {
    raw(little_endian({{0x02014b50, 4},
                       {kZipVersion, 2},
                       {kZipVersion, 2},
                       {kSizesFollow, 2},
                       {0, 2},
                       {0, 2},
                       {kDosDate, 2},
                       {member.crc, 4},
                       {member.size, 4},
                       {member.size, 4},
                       {member.name.size(), 2},
                       {0, 2},
                       {0, 2},
                       {0, 2},
                       {0, 2},
                       {0, 4},
                       {member.offset, 4}}) +
        member.name);
  }
  raw(little_endian({{0x06054b50, 4},
                     {0, 2},
                     {0, 2},
                     {members_.size(), 2},
                     {members_.size(), 2},
                     {offset_ - directory, 4},
                     {directory, 4},
                     {0, 2}}));
}

}  // namespace sb
