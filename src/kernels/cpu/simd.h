// One vector type a precision, as wide as the processor the file is compiled for.
#pragma once
#include <cmath>
#include <cstdint>
#include <utility>
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace sb::cpu {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
// NEON multiplies by a lane of a register for free; elsewhere a scalar is broadcast by the load.
#if defined(__aarch64__)
inline constexpr bool kLaneMultiply = true;
#else
inline constexpr bool kLaneMultiply = false;
#endif

template <class T>
struct Simd;
template <>
struct Simd<float> {
  typedef float Vec __attribute__((vector_size(kVectorBytes)));
  typedef float Unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(float)), may_alias));
};
template <>
struct Simd<double> {
  typedef double Vec __attribute__((vector_size(kVectorBytes)));
  typedef double Unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(double)), may_alias));
};
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
// Rows and widths of scratch matrices are padded with zeros to this multiple: no kernel then needs a masked edge.
template <class T>
inline constexpr int64_t kPad = kLanes<T> > 8 ? kLanes<T> : 8;

template <class T>
constexpr int64_t padded(int64_t n) {
  return (n + kPad<T> - 1) / kPad<T> * kPad<T>;
}

template <class T>
[[gnu::always_inline]] inline typename Simd<T>::Vec load(const T* p) {
  return *reinterpret_cast<const typename Simd<T>::Unaligned*>(p);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, const typename Simd<T>::Vec& v) {
  *reinterpret_cast<typename Simd<T>::Unaligned*>(p) = v;
}
template <class T>
inline T sum_lanes(const typename Simd<T>::Vec& v) {
  T s = v[0];
  for (int i = 1; i < kLanes<T>; ++i) s += v[i];
  return s;
}

// acc + b * a[lane]
#if defined(__aarch64__)
template <int lane>
inline Simd<float>::Vec multiply_lane(Simd<float>::Vec acc, Simd<float>::Vec b, Simd<float>::Vec a) {
  return vfmaq_laneq_f32(acc, b, a, lane);
}
template <int lane>
inline Simd<double>::Vec multiply_lane(Simd<double>::Vec acc, Simd<double>::Vec b, Simd<double>::Vec a) {
  return vfmaq_laneq_f64(acc, b, a, lane);
}
#else
template <int lane, class V>
inline V multiply_lane(V acc, V b, V a) {
  return acc + b * a[lane];
}
#endif

// body(constant 0), ..., body(constant n-1), unrolled
template <int n, class Body>
[[gnu::always_inline]] inline void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (body(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, n>{});
}

// sum_i a[i] b[i]; n a multiple of kPad. Two chains of partial sums, always joined in the same order.
template <class T>
inline T dot(int64_t n, const T* a, const T* b) {
  typename Simd<T>::Vec s0{}, s1{};
  int64_t i = 0;
  for (; i + 2 * kLanes<T> <= n; i += 2 * kLanes<T>) {
    s0 += load(a + i) * load(b + i);
    s1 += load(a + i + kLanes<T>) * load(b + i + kLanes<T>);
  }
  if (i < n) s0 += load(a + i) * load(b + i);
  return sum_lanes<T>(s0 + s1);
}

}  // namespace sb::cpu
