// Vectorised Philox4x32-10: the generator of random/philox.h, several blocks at a time.
#pragma once
#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "random/philox.h"

namespace sb::simd {

using Words = xsimd::batch<uint32_t>;
inline constexpr int kWordLanes = static_cast<int>(Words::size);

// High and low halves of the 64-bit product of each lane with `factor`.
struct Product {
  Words high, low;
};
inline __attribute__((always_inline)) Product product(const Words& a, uint32_t factor) {
#if defined(__aarch64__)
  const uint32x4_t v = a.data;
  const uint32x4_t begin = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(v), vdup_n_u32(factor)));
  const uint32x4_t end = vreinterpretq_u32_u64(vmull_high_u32(v, vdupq_n_u32(factor)));
  return {Words(vuzp2q_u32(begin, end)), Words(vuzp1q_u32(begin, end))};
#elif defined(__AVX512F__)
  const __m512i v = a.data, m = _mm512_set1_epi32(static_cast<int>(factor));
  const __m512i even = _mm512_mul_epu32(v, m), odd = _mm512_mul_epu32(_mm512_srli_epi64(v, 32), m);
  constexpr __mmask16 odd_lanes = 0xAAAA;
  return {Words(_mm512_mask_blend_epi32(odd_lanes, _mm512_srli_epi64(even, 32), odd)),
          Words(_mm512_mask_blend_epi32(odd_lanes, even, _mm512_slli_epi64(odd, 32)))};
#elif defined(__AVX2__)
  const __m256i v = a.data, m = _mm256_set1_epi32(static_cast<int>(factor));
  const __m256i even = _mm256_mul_epu32(v, m), odd = _mm256_mul_epu32(_mm256_srli_epi64(v, 32), m);
  constexpr int odd_lanes = 0xAA;
  return {Words(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, odd_lanes)),
          Words(_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), odd_lanes))};
#else
  alignas(64) uint32_t lane[kWordLanes], high[kWordLanes];
  a.store_aligned(lane);
  for (int i = 0; i < kWordLanes; ++i) {
    const uint64_t whole = uint64_t{lane[i]} * factor;
    high[i] = static_cast<uint32_t>(whole >> 32);
    lane[i] = static_cast<uint32_t>(whole);
  }
  return {Words::load_aligned(high), Words::load_aligned(lane)};
#endif
}

// Blocks of the counters {c0, c1, c2, c3}, which differ only in c0: V vectors for each of the four words. Half of the
// first two rounds is common to all counters and computed once.
template <int V>
inline __attribute__((always_inline)) void philox(const Words (&c0)[V], uint32_t c1, uint32_t c2, uint32_t c3,
                                                  uint32_t k0, uint32_t k1, Words (&word)[4][V]) {
  constexpr uint32_t factor0 = kPhiloxFactor[0], factor1 = kPhiloxFactor[1];
  constexpr uint32_t step0 = kPhiloxKeyStep[0], step1 = kPhiloxKeyStep[1];
  const uint64_t y0 = uint64_t{factor1} * c2;
  const uint32_t shared0 = static_cast<uint32_t>(y0 >> 32) ^ c1 ^ k0, shared1 = static_cast<uint32_t>(y0);
  const uint64_t x1 = uint64_t{factor0} * shared0;
  const Words even(shared1 ^ (k0 + step0)), odd(static_cast<uint32_t>(x1 >> 32) ^ (k1 + step1));
  for (int v = 0; v < V; ++v) {
    const Product x = product(c0[v], factor0), y = product(x.high ^ Words(c3 ^ k1), factor1);
    word[0][v] = y.high ^ even;
    word[1][v] = y.low;
    word[2][v] = x.low ^ odd;
    word[3][v] = Words(static_cast<uint32_t>(x1));
  }
  for (int round = 2; round < 10; ++round) {
    const Words key0(k0 + static_cast<uint32_t>(round) * step0), key1(k1 + static_cast<uint32_t>(round) * step1);
    for (int v = 0; v < V; ++v) {
      const Product x = product(word[0][v], factor0), y = product(word[2][v], factor1);
      word[0][v] = y.high ^ word[1][v] ^ key0;
      word[1][v] = y.low;
      word[2][v] = x.high ^ word[3][v] ^ key1;
      word[3][v] = x.low;
    }
  }
}

}  // namespace sb::simd
