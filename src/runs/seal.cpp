#include "runs/seal.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "base/sha256.h"

namespace sb {
namespace {

constexpr std::string_view key = "\"sha256\":\"";
constexpr size_t digits = 64;
constexpr size_t segment = size_t{4} << 20;

// Feeds bytes [begin, end) of the pieces laid end to end, those of the seal as zeros.
void feed(Sha256& hash, std::span<const std::string_view> pieces, size_t begin, size_t end, size_t seal) {
  size_t start = 0;  // of the piece
  for (const auto piece : pieces) {
    size_t at = std::max(begin, start);
    const size_t stop = std::min(end, start + piece.size());
    while (at < stop) {
      const bool zeros = at >= seal && at < seal + digits;
      const size_t next = std::min(stop, zeros ? seal + digits : at < seal ? seal : stop);
      if (zeros) {
        hash.update(std::string(next - at, '0'));
      } else {
        hash.update(piece.substr(at - start, next - at));
      }
      at = next;
    }
    start += piece.size();
    if (start >= end) return;
  }
}

}  // namespace

std::string blank_seal() {
  return std::string(digits, '0');
}

size_t find_seal(std::string_view content) {
  for (size_t at = content.find(key); at != std::string_view::npos; at = content.find(key, at + 1)) {
    const size_t begin = at + key.size();
    if (content.size() - begin > digits && content[begin + digits] == '"') return begin;
  }
  return std::string_view::npos;
}

std::string seal_digits(std::span<const std::string_view> pieces, size_t at) {
  size_t size = 0;
  for (const auto piece : pieces) size += piece.size();
  const size_t segments = size / segment + 1;
  std::vector<std::string> parts(segments);
  parallel_for(segments, 1, 0, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      Sha256 hash;
      feed(hash, pieces, i * segment, std::min(size, (i + 1) * segment), at);
      parts[i] = hash.hex();
    }
  });
  Sha256 all;
  for (const auto& part : parts) all.update(part);
  return all.hex();
}

void seal(std::string& content) {
  const size_t at = find_seal(content);
  if (at == std::string::npos) throw check_failed("seal", "no place for the digest");
  const std::string_view whole = content;
  content.replace(at, digits, seal_digits({&whole, 1}, at));
}

bool is_sealed(std::string_view content) {
  const size_t at = find_seal(content);
  return at != std::string_view::npos && content.substr(at, digits) == seal_digits({&content, 1}, at);
}

std::string sealed_json(std::string_view object) {
  const size_t end = object.find_last_of('}');
  if (end == std::string_view::npos) throw check_failed("seal", "expected a JSON object");
  std::string out(object.substr(0, end));
  out.erase(out.find_last_not_of(" \n") + 1);
  out += out.ends_with('{') ? "\n" : ",\n";
  out += "  " + std::string(key) + blank_seal() + "\"\n}\n";
  seal(out);
  return out;
}

}  // namespace sb
