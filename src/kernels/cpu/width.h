// How wide the vectors of the processor are that this is compiled for.
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
// Rows and widths of scratch matrices are padded with zeros to this multiple: no kernel then needs a masked edge.
template <class T>
inline constexpr int64_t kPad = kVectorBytes / static_cast<int64_t>(sizeof(T)) > 8
                                    ? kVectorBytes / static_cast<int64_t>(sizeof(T))
                                    : 8;
template <class T>
constexpr int64_t padded(int64_t n) {
  return (n + kPad<T> - 1) / kPad<T> * kPad<T>;
}

}  // namespace sb::cpu
