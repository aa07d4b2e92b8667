// Width of the target processor's SIMD vectors.
#pragma once
#include <cstdint>

namespace sb::cpu {

#if defined(__AVX512F__)
inline constexpr int64_t kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int64_t kVectorBytes = 32;
#else
inline constexpr int64_t kVectorBytes = 16;
#endif
// Rows and columns of scratch matrices are padded with zeros to a multiple of this, so no kernel needs masks at edges.
template <class T>
inline constexpr int64_t kPad = kVectorBytes / static_cast<int64_t>(sizeof(T)) > 8
                                    ? kVectorBytes / static_cast<int64_t>(sizeof(T))
                                    : 8;
template <class T>
constexpr int64_t padded(int64_t n) {
  return (n + kPad<T> - 1) / kPad<T> * kPad<T>;
}

}  // namespace sb::cpu
