#include "base/npy.h"

#include <limits>
#include <optional>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// The text after "'key':" in the header, which is a Python dictionary.
std::string_view member(std::string_view header, std::string_view key) {
  const std::string quoted = "'" + std::string(key) + "':";
  const size_t at = header.find(quoted);
  return at == std::string_view::npos ? std::string_view() : trimmed(header.substr(at + quoted.size()));
}

std::optional<std::vector<uint64_t>> parse_shape(std::string_view text) {
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) return std::nullopt;
  std::vector<uint64_t> shape;
  for (std::string_view rest = text.substr(1, end - 1); !trimmed(rest).empty();) {
    const size_t comma = rest.find(',');
    const auto size = parse_integer(std::string(trimmed(rest.substr(0, comma))));
    if (!size || *size < 0) return std::nullopt;
    shape.push_back(static_cast<uint64_t>(*size));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return shape;
}

}  // namespace

NpyArray parse_npy(std::string_view bytes, const std::string& path) {
  const auto refused = [&](const std::string& what) { return bad_input("npy", printable(path, 400) + ": " + what); };
  constexpr size_t version_end = 8;
  if (!bytes.starts_with(kNpyMagic) || bytes.size() < version_end + 4) throw refused("not a NumPy array");
  const size_t length_bytes = bytes[6] == 1 ? 2 : 4;
  const uint64_t length = little_endian(bytes.substr(version_end, length_bytes));
  const size_t begin = version_end + length_bytes;
  if (length > bytes.size() - begin) throw refused("its header is cut off");
  const std::string_view header = bytes.substr(begin, length), type = member(header, "descr");
  NpyArray out;
  const bool plain = type.size() >= 5 && type[0] == '\'' && (type[1] == '<' || type[1] == '|') && type[4] == '\'' &&
                     type[3] >= '1' && type[3] <= '8';
  if (!plain) throw refused("expected plain little-endian numbers, got " + printable(type.substr(0, 20)));
  out.kind = type[2];
  out.width = type[3] - '0';
  if (!member(header, "fortran_order").starts_with("False")) throw refused("expected an array in C order");
  const auto shape = parse_shape(member(header, "shape"));
  if (!shape) throw refused("its shape cannot be read");
  out.shape = *shape;
  uint64_t size = static_cast<uint64_t>(out.width);
  for (const uint64_t each : out.shape) {
    if (each != 0 && size > std::numeric_limits<uint64_t>::max() / each) throw refused("its shape is too large");
    size *= each;
  }
  out.values = bytes.substr(begin + length);
  if (out.values.size() != size)
    throw refused("values, expected " + std::to_string(size) + " bytes, got " + std::to_string(out.values.size()));
  return out;
}

}  // namespace sb
