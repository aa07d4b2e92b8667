#include "store/seal.h"

#include <algorithm>

#include "base/error.h"
#include "base/sha256.h"

namespace sb {
namespace {

constexpr std::string_view key = "\"sha256\":\"";
constexpr size_t digits = 64;

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
  Sha256 hash;
  size_t start = 0;  // of the piece
  for (const auto piece : pieces) {
    const size_t cut = std::clamp(at, start, start + piece.size()) - start;
    const size_t resume = std::clamp(at + digits, start, start + piece.size()) - start;
    hash.update(piece.substr(0, cut));
    hash.update(std::string(resume - cut, '0'));
    hash.update(piece.substr(resume));
    start += piece.size();
  }
  return hash.hex();
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
