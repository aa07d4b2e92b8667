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

// Where the digits begin; npos where there is no seal.
size_t find_seal(std::string_view content) {
  for (size_t at = content.find(key); at != std::string_view::npos; at = content.find(key, at + 1)) {
    const size_t begin = at + key.size();
    if (content.size() - begin > digits && content[begin + digits] == '"') return begin;
  }
  return std::string_view::npos;
}

std::string digest(std::string_view content, size_t blank) {
  const size_t segments = content.size() / segment + 1;
  std::vector<std::string> parts(segments);
  parallel_for(segments, 1, 0, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const size_t begin = i * segment;
      const size_t end = std::min(content.size(), begin + segment);
      const size_t zeros_begin = std::clamp(blank, begin, end);
      const size_t zeros_end = std::clamp(blank + digits, begin, end);
      Sha256 hash;
      hash.update(content.substr(begin, zeros_begin - begin));
      hash.update(std::string(zeros_end - zeros_begin, '0'));
      hash.update(content.substr(zeros_end, end - zeros_end));
      parts[i] = hash.hex();
    }
  });
  Sha256 all;
  for (const auto& part : parts) all.update(part);
  return all.hex();
}

}  // namespace

std::string blank_seal() {
  return std::string(digits, '0');
}

void seal(std::string& content) {
  const size_t at = find_seal(content);
  if (at == std::string::npos) throw check_failed("seal", "no place for the digest");
  content.replace(at, digits, digest(content, at));
}

bool is_sealed(std::string_view content) {
  const size_t at = find_seal(content);
  return at != std::string_view::npos && content.substr(at, digits) == digest(content, at);
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
