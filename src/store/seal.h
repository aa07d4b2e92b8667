// Seal: a file that contains its own digest, as the text "sha256":"<64 digits>" (in a JSON object or in a safetensors
// header). The digest is the SHA-256 of the file with these digits set to 0. A shell can verify it:
//   zeros=$(printf 0%.0s {1..64}); LC_ALL=C sed "s/\"sha256\":\"[0-9a-f]\{64\}\"/\"sha256\":\"$zeros\"/" FILE |
//   sha256sum
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sb {

std::string blank_seal();                  // 64 zeros: value of the key "sha256" before sealing
void seal(std::string& content);           // writes the digest over the zeros
bool is_sealed(std::string_view content);  // the seal exists and is correct

// For files too large to copy. find_seal: position of the seal's digits in the piece that contains them (npos: none).
// seal_digits: the digits for a file made of these pieces, with the seal at byte `at`.
size_t find_seal(std::string_view content);
std::string seal_digits(std::span<const std::string_view> pieces, size_t at);

// Adds the seal to a JSON object as its last member, on a separate line.
std::string sealed_json(std::string_view object);

}  // namespace sb
