#include "base/digest_instructions.h"

// Clang declares these intrinsics of arm64 only if the whole file is compiled for them.
#if defined(__aarch64__) && defined(__linux__) && !defined(__clang__)
#define SB_ARM_INSTRUCTIONS
#endif

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(SB_ARM_INSTRUCTIONS)
#include <arm_acle.h>
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <cstring>
#endif

namespace sb {

#if defined(__x86_64__)
namespace {

struct Features {
  bool sha = false, carryless = false, avx = false;
};

Features features() {
  Features out;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return out;
  const bool sse41 = (c & bit_SSE4_1) != 0 && (c & bit_SSSE3) != 0;
  out.carryless = sse41 && (c & bit_PCLMUL) != 0;
  out.avx = (c & bit_AVX) != 0 && (c & bit_OSXSAVE) != 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) out.sha = sse41 && (b & bit_SHA) != 0;
  return out;
}

__attribute__((target("avx"), noinline)) void clear_upper_halves() {
  _mm256_zeroupper();
}

// Clears the upper halves of the AVX registers. If earlier code left bits there, instructions without an AVX form (such
// as those of SHA-256) must preserve them, which made them a hundred times as slow (measured).
void ready_for_narrow() {
  static const bool wide = features().avx;
  if (wide) clear_upper_halves();
}

// The instructions keep the state as (A, B, E, F) and (C, D, G, H) and do two rounds each.
__attribute__((target("sha,sse4.1,ssse3"))) void sha_blocks(uint32_t (&state)[8], const uint8_t* data, size_t blocks) {
  ready_for_narrow();
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  auto* const stored = reinterpret_cast<__m128i*>(state);
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(stored), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(stored + 1), 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (; blocks > 0; --blocks, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i)), swap);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {  // four rounds each
      const auto* constants = reinterpret_cast<const __m128i*>(sha256_constants + 4 * i);
      const __m128i sum = _mm_add_epi32(w[i & 3], _mm_loadu_si128(constants));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
      if (i < 12) {  // words 4 i + 16 .. 4 i + 19
        const __m128i third = w[(i + 3) & 3];
        const __m128i part =
            _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]), _mm_alignr_epi8(third, w[(i + 2) & 3], 4));
        w[i & 3] = _mm_sha256msg2_epu32(part, third);
      }
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(stored, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(stored + 1, _mm_alignr_epi8(dchg, feba, 8));
}

// x^n mod P in the bit order of the checksum, shifted left by one, as the carry-less product requires.
constexpr uint64_t power(int n) {
  uint32_t c = 0x80000000U;
  for (; n > 0; --n) c = (c & 1) != 0 ? 0xEDB88320U ^ (c >> 1) : c >> 1;
  return static_cast<uint64_t>(c) << 1;
}

// Advances `sum` by the number of bits that `factors` encode, and adds `next`.
__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i sum, __m128i factors, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(sum, factors, 0x00), high = _mm_clmulepi64_si128(sum, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// Four 16-byte sums advance in parallel. At the end they are merged into one with the checksum of all data.
__attribute__((target("pclmul,sse4.1"))) uint32_t crc_bytes(uint32_t crc, const uint8_t* data, size_t size) {
  if (size < 128) return crc32_bytes(crc, data, size);
  ready_for_narrow();
  const auto load = [](const uint8_t* p) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  };
  const __m128i by_64 = _mm_set_epi64x(static_cast<int64_t>(power(512 - 32)), static_cast<int64_t>(power(512 + 32)));
  const __m128i by_16 = _mm_set_epi64x(static_cast<int64_t>(power(128 - 32)), static_cast<int64_t>(power(128 + 32)));
  __m128i sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = load(data + 16 * i);
  sum[0] = _mm_xor_si128(sum[0], _mm_cvtsi32_si128(static_cast<int>(~crc)));
  for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
    for (int i = 0; i < 4; ++i) sum[i] = fold(sum[i], by_64, load(data + 16 * i));
  }
  __m128i all = sum[0];
  for (int i = 1; i < 4; ++i) all = fold(all, by_16, sum[i]);
  for (; size >= 16; data += 16, size -= 16) all = fold(all, by_16, load(data));
  uint8_t rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), all);
  return crc32_bytes(crc32_bytes(~0U, rest, 16), data, size);
}

}  // namespace

Sha256Blocks sha256_instructions() {
  static const bool there = features().sha;
  return there ? sha_blocks : nullptr;
}

Crc32Bytes crc32_instructions() {
  static const bool there = features().carryless;
  return there ? crc_bytes : nullptr;
}

#elif defined(SB_ARM_INSTRUCTIONS)
namespace {

__attribute__((target("+crypto"))) void sha_blocks(uint32_t (&state)[8], const uint8_t* data, size_t blocks) {
  uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
  for (; blocks > 0; --blocks, data += 64) {
    const uint32x4_t abcd_before = abcd, efgh_before = efgh;
    uint32x4_t w[4];
    for (int i = 0; i < 4; ++i) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {  // four rounds each
      const uint32x4_t sum = vaddq_u32(w[i & 3], vld1q_u32(sha256_constants + 4 * i));
      const uint32x4_t before = abcd;
      abcd = vsha256hq_u32(abcd, efgh, sum);
      efgh = vsha256h2q_u32(efgh, before, sum);
      if (i < 12) {  // words 4 i + 16 .. 4 i + 19
        w[i & 3] = vsha256su1q_u32(vsha256su0q_u32(w[i & 3], w[(i + 1) & 3]), w[(i + 2) & 3], w[(i + 3) & 3]);
      }
    }
    abcd = vaddq_u32(abcd, abcd_before);
    efgh = vaddq_u32(efgh, efgh_before);
  }
  vst1q_u32(state, abcd);
  vst1q_u32(state + 4, efgh);
}

__attribute__((target("+crc"))) uint32_t crc_bytes(uint32_t crc, const uint8_t* data, size_t size) {
  crc = ~crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, data, 8);
    crc = __crc32d(crc, eight);
  }
  for (; size > 0; ++data, --size) crc = __crc32b(crc, *data);
  return ~crc;
}

}  // namespace

Sha256Blocks sha256_instructions() {
  static const bool there = (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;
  return there ? sha_blocks : nullptr;
}

Crc32Bytes crc32_instructions() {
  static const bool there = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  return there ? crc_bytes : nullptr;
}

#else

Sha256Blocks sha256_instructions() {
  return nullptr;
}

Crc32Bytes crc32_instructions() {
  return nullptr;
}

#endif

}  // namespace sb
