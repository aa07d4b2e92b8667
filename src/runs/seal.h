// A file that carries its own digest. The text "sha256":"<64 digits>" stands in it (in a JSON object or in a
// safetensors header); the digest is the SHA-256 of the file with those digits at 0. So a shell can confirm it:
//   zeros=$(printf 0%.0s {1..64}); LC_ALL=C sed "s/\"sha256\":\"[0-9a-f]\{64\}\"/\"sha256\":\"$zeros\"/" FILE |
//   sha256sum
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sb {

std::string blank_seal();                  // what to put under the key "sha256" before sealing: 64 zeros
void seal(std::string& content);           // fills in the blank
bool is_sealed(std::string_view content);  // the seal is there and fits
// The same of files before schema 3: their digest is that of the hex digests of their 4 MiB pieces.
bool was_sealed(std::string_view content);

// For files too large to be copied: where the digits of the seal begin in the piece that holds it (npos: nowhere), and
// the digits for a file made of these pieces, the seal at byte `at`.
size_t find_seal(std::string_view content);
std::string seal_digits(std::span<const std::string_view> pieces, size_t at);

// A JSON object with the seal as its last member, on a line of its own.
std::string sealed_json(std::string_view object);

}  // namespace sb
