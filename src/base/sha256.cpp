#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/digest_instructions.h"

namespace sb {
namespace {

uint32_t big_endian(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 | static_cast<uint32_t>(p[2]) << 8 |
         p[3];
}

// One round with the roles of a..h fixed by the caller, so that nothing has to be moved between rounds.
inline void round(uint32_t a, uint32_t b, uint32_t c, uint32_t& d, uint32_t e, uint32_t f, uint32_t g, uint32_t& h,
                  uint32_t word) {
  const uint32_t t = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + (g ^ (e & (f ^ g))) + word;
  d += t;
  h = t + (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) | (c & (a | b)));
}

void compress(uint32_t (&state)[8], const uint8_t* block) {
  uint32_t w[16];
  for (int i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  auto& [s0, s1, s2, s3, s4, s5, s6, s7] = state;
  uint32_t a = s0, b = s1, c = s2, d = s3, e = s4, f = s5, g = s6, h = s7;
  for (int base = 0; base < 64; base += 16) {
    if (base > 0) {
      for (int i = 0; i < 16; ++i) {
        const uint32_t x = w[(i + 1) & 15], y = w[(i + 14) & 15];
        w[i] += (std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3)) + w[(i + 9) & 15] +
                (std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10));
      }
    }
    const uint32_t* k = sha256_constants + base;
    for (int i = 0; i < 16; i += 8) {
      round(a, b, c, d, e, f, g, h, w[i] + k[i]);
      round(h, a, b, c, d, e, f, g, w[i + 1] + k[i + 1]);
      round(g, h, a, b, c, d, e, f, w[i + 2] + k[i + 2]);
      round(f, g, h, a, b, c, d, e, w[i + 3] + k[i + 3]);
      round(e, f, g, h, a, b, c, d, w[i + 4] + k[i + 4]);
      round(d, e, f, g, h, a, b, c, w[i + 5] + k[i + 5]);
      round(c, d, e, f, g, h, a, b, w[i + 6] + k[i + 6]);
      round(b, c, d, e, f, g, h, a, w[i + 7] + k[i + 7]);
    }
  }
  const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += sum[i];
}

void absorb(uint32_t (&state)[8], const uint8_t* data, size_t blocks) {
  static const Sha256Blocks best = sha256_instructions() ? sha256_instructions() : sha256_blocks;
  best(state, data, blocks);
}

}  // namespace

void sha256_blocks(uint32_t (&state)[8], const uint8_t* data, size_t blocks) {
  for (; blocks > 0; --blocks, data += 64) compress(state, data);
}

void Sha256::update(const void* data, size_t size) {
  const auto* p = static_cast<const uint8_t*>(data);
  const size_t filled = bytes_ % 64;
  bytes_ += size;
  if (filled > 0) {
    const size_t take = std::min(size, 64 - filled);
    std::memcpy(tail_.data() + filled, p, take);
    p += take;
    size -= take;
    if (filled + take < 64) return;
    absorb(state_, tail_.data(), 1);
  }
  absorb(state_, p, size / 64);
  p += size / 64 * 64;
  size %= 64;
  if (size > 0) std::memcpy(tail_.data(), p, size);
}

std::string Sha256::hex() {
  const uint64_t bits = bytes_ * 8;
  const uint8_t one = 0x80, zero = 0;
  update(&one, 1);
  while (bytes_ % 64 != 56) update(&zero, 1);
  uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
  update(length, 8);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[word >> shift & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

std::string sha256_bytes(std::string_view text) {
  const std::string hex = sha256_hex(text);
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 2) out += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  return out;
}

}  // namespace sb
