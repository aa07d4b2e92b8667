#include "base/sha256.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

namespace sb {
namespace {

constexpr uint32_t kConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 | static_cast<uint32_t>(p[2]) << 8 |
         p[3];
}

void compress(uint32_t (&state)[8], const uint8_t* block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (int i = 16; i < 64; ++i)
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3)) +
           (std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10));
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    const uint32_t t =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + (g ^ (e & (f ^ g))) + kConstants[i] + w[i];
    const uint32_t sum = t + (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) | (c & (a | b)));
    h = std::exchange(g, std::exchange(f, std::exchange(e, d + t)));
    d = std::exchange(c, std::exchange(b, std::exchange(a, sum)));
  }
  const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += sums[i];
}

// Begins like the SHA256_CTX of OpenSSL and has at least its size.
struct Context {
  uint32_t state[8];
  uint8_t rest[256];
};
using Transform = void (*)(Context*, const uint8_t* block);

// The function of OpenSSL's libcrypto that compresses a block with CPU instructions; nullptr without the library.
Transform libcrypto_transform() {
  for (const char* name : {"libcrypto.so.3", "libcrypto.so.1.1"})
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL))
      if (void* found = ::dlsym(library, "SHA256_Transform")) return reinterpret_cast<Transform>(found);
  return nullptr;
}

#if defined(__x86_64__)
__attribute__((target("avx"), noinline)) void clear_upper_halves() {
  __builtin_ia32_vzeroupper();
}
// If the upper halves of the wide registers hold bits, SHA instructions are a hundred times as slow (measured).
void ready_for_narrow() {
  if (__builtin_cpu_supports("avx")) clear_upper_halves();
}
#else
void ready_for_narrow() {}
#endif

// `total`: bytes of the stream so far.
void absorb(uint32_t (&state)[8], const uint8_t* data, size_t blocks, uint64_t total) {
  constexpr uint64_t worth_loading = 1 << 18;  // bytes; a short text is done before the library is loaded
  if (total >= worth_loading)
    if (static const Transform transform = libcrypto_transform(); transform != nullptr) {
      Context context;
      std::copy(std::begin(state), std::end(state), context.state);
      ready_for_narrow();
      for (; blocks > 0; --blocks, data += 64) transform(&context, data);
      std::copy(std::begin(context.state), std::end(context.state), state);
    }
  for (; blocks > 0; --blocks, data += 64) compress(state, data);
}

}  // namespace

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
    absorb(state_, tail_.data(), 1, bytes_);
  }
  absorb(state_, p, size / 64, bytes_);
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
