// SIMD vectors of the machine's width, and the elementary functions of vectors that the kernels need.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "kernels/cpu/width.h"

namespace sb::simd {

template <class T>
using Vec = xsimd::batch<T>;
template <class T>
constexpr int64_t lanes = static_cast<int64_t>(Vec<T>::size);

template <class T>
inline __attribute__((always_inline)) Vec<T> load(const T* p) {
  return Vec<T>::load_unaligned(p);
}
template <class T>
inline __attribute__((always_inline)) void store(T* p, const Vec<T>& v) {
  v.store_unaligned(p);
}
static_assert(lanes<float> * sizeof(float) == cpu::kVectorBytes, "scratch is padded for other vectors");

template <class T>
T horizontal_sum(const Vec<T>& v) {
  alignas(64) T lane[lanes<T>];
  v.store_aligned(lane);
  T sum = lane[0];
  for (int64_t i = 1; i < lanes<T>; ++i) sum += lane[i];
  return sum;
}

// acc + b * a[lane]. NEON can multiply by one lane of a register at no extra cost. Other machines broadcast a scalar
// when they load it.
#if defined(__aarch64__)
inline constexpr bool kLaneMultiply = true;
template <int lane>
inline Vec<float> multiply_lane(const Vec<float>& acc, const Vec<float>& b, const Vec<float>& a) {
  return vfmaq_laneq_f32(acc, b, a, lane);
}
template <int lane>
inline Vec<double> multiply_lane(const Vec<double>& acc, const Vec<double>& b, const Vec<double>& a) {
  return vfmaq_laneq_f64(acc, b, a, lane);
}
#else
inline constexpr bool kLaneMultiply = false;
template <int lane, class V>
V multiply_lane(const V& acc, const V& b, const V& a) {
  return xsimd::fma(b, V(a.get(lane)), acc);
}
#endif

// body(constant 0), ..., body(constant n-1), unrolled. Bodies that keep vectors in registers need the attribute
// always_inline.
template <int n, class Body>
[[gnu::always_inline]] inline void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, n>{});
}

// sum_i a[i] b[i]; n must be a multiple of kPad. Two partial sums, always added in the same order.
template <class T>
inline T dot(int64_t n, const T* a, const T* b) {
  constexpr int64_t L = lanes<T>;
  Vec<T> s0(T(0)), s1(T(0));
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    s0 = xsimd::fma(load(a + i), load(b + i), s0);
    s1 = xsimd::fma(load(a + i + L), load(b + i + L), s1);
  }
  if (i < n) s0 = xsimd::fma(load(a + i), load(b + i), s0);
  return horizontal_sum(s0 + s1);
}

// Memory access for a loop body: a whole vector, or (PartVector) the last elements of a row, padded with zeros.
template <class T>
struct WholeVector {
  static constexpr int64_t count = lanes<T>;
  __attribute__((always_inline)) Vec<T> load(const T* p) const { return simd::load(p); }
  __attribute__((always_inline)) void store(T* p, const Vec<T>& v) const { simd::store(p, v); }
  __attribute__((always_inline)) Vec<T> only(const Vec<T>& v) const { return v; }
};
template <class T>
struct PartVector {
  int64_t count;
  Vec<T> load(const T* p) const {
    alignas(64) T lane[lanes<T>] = {};
    std::memcpy(lane, p, static_cast<size_t>(count) * sizeof(T));
    return Vec<T>::load_aligned(lane);
  }
  void store(T* p, const Vec<T>& v) const {
    alignas(64) T lane[lanes<T>];
    v.store_aligned(lane);
    std::memcpy(p, lane, static_cast<size_t>(count) * sizeof(T));
  }
  // v with zeros in the lanes beyond the row's end
  Vec<T> only(const Vec<T>& v) const {
    alignas(64) T lane[lanes<T>];
    v.store_aligned(lane);
    return load(lane);
  }
};

// Loops over a row call body(i, io): `io` loads and stores a vector that starts at element i. A body should capture its
// pointers by value ([=]); captured by reference, they would be read again after every store. The remainder of a row is
// handled in a separate function, which keeps the loop small enough to be inlined.
template <class T, class Body>
__attribute__((noinline)) void last_part(int64_t i, int64_t n, const Body body) {
  body(i, PartVector<T>{n - i});
}
// For i = 0, L, 2L, ... < n.
template <class T, class Body>
inline __attribute__((always_inline)) void for_vectors(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) body(i, WholeVector<T>{});
  if (i < n) last_part<T, Body>(i, n, body);
}

// Sum over i of the vectors term(i, io); four running sums hide the latency of addition.
template <class T, class Term>
inline __attribute__((always_inline)) T sum_vectors(int64_t n, const Term& term) {
  constexpr int64_t L = lanes<T>;
  Vec<T> sum[4] = {Vec<T>(T(0)), Vec<T>(T(0)), Vec<T>(T(0)), Vec<T>(T(0))};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L)
    for (int j = 0; j < 4; ++j) sum[j] += term(i + j * L, WholeVector<T>{});
  for (; i + L <= n; i += L) sum[0] += term(i, WholeVector<T>{});
  if (i < n) sum[1] += term(i, PartVector<T>{n - i});
  return horizontal_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// The largest of n > 0 elements.
template <class T>
T largest(int64_t n, const T* x) {
  constexpr int64_t L = lanes<T>;
  T most = x[0];
  int64_t i = 0;
  if (n >= 4 * L) {
    Vec<T> top[4];
    for (int j = 0; j < 4; ++j) top[j] = load(x + j * L);
    for (i = 4 * L; i + 4 * L <= n; i += 4 * L)
      for (int j = 0; j < 4; ++j) top[j] = xsimd::max(top[j], load(x + i + j * L));
    alignas(64) T lane[lanes<T>];
    xsimd::max(xsimd::max(top[0], top[1]), xsimd::max(top[2], top[3])).store_aligned(lane);
    for (const T v : lane) most = v > most ? v : most;
  }
  for (; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// Constants of a floating-point format, and polynomials p with 2^r = 1 + r p(r) on |r| <= 1/2 and e^r = 1 + r p(r) on
// |r| <= ln2 / 2 (relative error 2.6e-9 for float, 1.8e-17 for double; both exact at r = 0).
template <class T>
struct ExpTable;
template <>
struct ExpTable<float> {
  using Bits = uint32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr float bias = 127.F;
  static constexpr float round = 12582912.F;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  static constexpr float ln2_high = 0.693145751953125F, ln2_low = 1.42860682030941723212e-6F;
  static constexpr float exp2[] = {1.5594678161e-04F, 1.3406643902e-03F, 9.6176929730e-03F,
                                   5.5503105510e-02F, 2.4022652783e-01F, 6.9314721497e-01F};
  static constexpr float exp[] = {1.4061240943e-03F, 8.3790111606e-03F, 4.1664777289e-02F,
                                  1.6666365441e-01F, 5.0000004344e-01F, 1.0000000496e+00F};
};
template <>
struct ExpTable<double> {
  using Bits = uint64_t;
  static constexpr int mantissa_bits = 52;
  static constexpr double bias = 1023.;
  static constexpr double round = 6755399441055744.;  // 1.5 * 2^52
  static constexpr double ln2_high = 0.693147180369123816490, ln2_low = 1.90821492927058770002e-10;
  static constexpr double exp2[] = {4.07807192958833689656e-10, 7.07257041281442338367e-09, 1.01806476592341387749e-07,
                                    1.32154426753298228095e-06, 1.52527273851938682792e-05, 1.54035304415721293605e-04,
                                    1.33335581534399657232e-03, 9.61812910760700273682e-03, 5.55041086647903927909e-02,
                                    2.40226506959100971628e-01, 6.93147180559945730316e-01};
  static constexpr double exp[] = {2.29813115388343637115e-08, 2.76262965542171676860e-07, 2.75642549294390357803e-06,
                                   2.48015045110370784453e-05, 1.98412614913927987494e-04, 1.38888889323407959883e-03,
                                   8.33333333771545982371e-03, 4.16666666665736346031e-02, 1.66666666666573010103e-01,
                                   5.00000000000000555112e-01, 1.00000000000000066613e+00};
};

// Loads a constant vector from memory at each use. NEON's multiply-add overwrites its addend, so a constant in a
// register needs a move per use, which halves the throughput; a load runs in parallel. On other machines the compiler
// decides.
template <class T>
inline __attribute__((always_inline)) Vec<T> addend(const T (&c)[static_cast<size_t>(lanes<T>)]) {
#if defined(__aarch64__)
  typename Vec<T>::register_type v;
  asm volatile("ldr %q0, %1" : "=w"(v) : "m"(c));
  return Vec<T>(v);
#else
  return Vec<T>::load_unaligned(c);
#endif
}

// One constant in all lanes, in memory.
template <class T>
struct Everywhere {
  alignas(64) T lane[static_cast<size_t>(lanes<T>)];
  constexpr explicit Everywhere(T value) : lane() {
    for (T& x : lane) x = value;
  }
};
template <class T>
inline constexpr Everywhere<T> exponent_shift(ExpTable<T>::round + ExpTable<T>::bias);

// Coefficients of a polynomial, each in all lanes: highest power first, then the constant term 1.
template <class T, size_t n>
struct Series {
  alignas(64) T lane[n + 1][static_cast<size_t>(lanes<T>)];
  constexpr explicit Series(const T (&coefficient)[n]) : lane() {
    for (size_t i = 0; i <= n; ++i)
      for (T& x : lane[i]) x = i < n ? coefficient[i] : T(1);
  }
};
template <class T>
inline constexpr Series exp2_series(ExpTable<T>::exp2);
template <class T>
inline constexpr Series exp_series(ExpTable<T>::exp);
// The series of e^{-r}
template <class T, size_t n>
constexpr Series<T, n> alternating(const T (&coefficient)[n]) {
  T signed_[n] = {};
  for (size_t i = 0; i < n; ++i) signed_[i] = (n - i) % 2 == 0 ? coefficient[i] : -coefficient[i];
  return Series<T, n>(signed_);
}
template <class T>
inline constexpr auto exp_minus_series = alternating(ExpTable<T>::exp);

// Number of vectors to process together: the registers hold about three values for each.
#if defined(__aarch64__) || defined(__AVX512F__)
inline constexpr int kWide = 8;
#else
inline constexpr int kWide = 4;
#endif

// p[v] = the polynomial at r[v], for V vectors together. Uses pairs of powers for degree 6 and few vectors (shorter
// dependency chains, more registers), otherwise Horner's scheme.
template <class T, size_t n, int V>
inline __attribute__((always_inline)) void sum_series(const Series<T, n>& series, const Vec<T> (&r)[V],
                                                      Vec<T> (&p)[V]) {
  if constexpr (n == 6 && V <= 4) {
    const auto c = [&](size_t i) { return Vec<T>(series.lane[i][0]); };
    Vec<T> square[V], high[V], middle[V];
    for (int v = 0; v < V; ++v) square[v] = r[v] * r[v];
    for (int v = 0; v < V; ++v) high[v] = xsimd::fma(r[v], c(1), addend<T>(series.lane[2]));
    for (int v = 0; v < V; ++v) middle[v] = xsimd::fma(r[v], c(3), addend<T>(series.lane[4]));
    for (int v = 0; v < V; ++v) p[v] = xsimd::fma(r[v], c(5), addend<T>(series.lane[6]));
    for (int v = 0; v < V; ++v) high[v] = xsimd::fma(square[v], c(0), high[v]);
    for (int v = 0; v < V; ++v) p[v] = xsimd::fma(square[v], middle[v], p[v]);
    for (int v = 0; v < V; ++v) square[v] *= square[v];
    for (int v = 0; v < V; ++v) p[v] = xsimd::fma(square[v], high[v], p[v]);
  } else {
    for (int v = 0; v < V; ++v) p[v] = Vec<T>(series.lane[0][0]);
    for (size_t i = 1; i <= n; ++i)
      for (int v = 0; v < V; ++v) p[v] = xsimd::fma(p[v], r[v], addend<T>(series.lane[i]));
  }
}

// Returns 2^n, given n + bias + ExpTable::round, whose low bits are the exponent field of the result.
template <class T>
inline __attribute__((always_inline)) Vec<T> power_of_two(const Vec<T>& shifted) {
  // xsimd's shift by a run-time count calls a function per vector; the compiler's own vectors need one instruction.
  typedef typename ExpTable<T>::Bits Bits __attribute__((vector_size(sizeof(Vec<T>))));
  Bits bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits <<= ExpTable<T>::mantissa_bits;
  Vec<T> power;
  std::memcpy(&power, &bits, sizeof power);
  return power;
}

// x <- 2^max(x, least) for x <= bias; 0 if the result is below the normal range. NaN stays NaN (on x86, min and max
// return their second operand).
template <class T, int V>
inline __attribute__((always_inline)) void exp2_bounded_above(Vec<T> (&x)[V], const Vec<T>& least) {
  using Table = ExpTable<T>;
  const Vec<T> shift(Table::round + Table::bias);
  Vec<T> shifted[V], r[V];
  for (int v = 0; v < V; ++v) x[v] = xsimd::max(least, x[v]);
  for (int v = 0; v < V; ++v) shifted[v] = x[v] + shift;
  for (int v = 0; v < V; ++v) r[v] = x[v] - (shifted[v] - shift);
  sum_series(exp2_series<T>, r, x);
  for (int v = 0; v < V; ++v) x[v] *= power_of_two<T>(shifted[v]);
}

// x <- e^x, or e^{-x} if `minus`. Results below the normal range become 0, large ones saturate near the largest power
// of two, NaN stays NaN.
template <class T, int V, bool minus = false>
inline __attribute__((always_inline)) void exp(Vec<T> (&x)[V]) {
  using Table = ExpTable<T>;
  constexpr T ln2 = T(0.69314718055994530942), low = -Table::bias * ln2, high = (Table::bias - 1) * ln2;
  const Vec<T> shift(Table::round + Table::bias), least(minus ? -high : low), most(minus ? -low : high);
  Vec<T> shifted[V], r[V];
  for (int v = 0; v < V; ++v) x[v] = xsimd::min(most, xsimd::max(least, x[v]));
  for (int v = 0; v < V; ++v)
    shifted[v] = xsimd::fma(x[v], Vec<T>((minus ? -1 : 1) / ln2), addend<T>(exponent_shift<T>.lane));
  for (int v = 0; v < V; ++v) {  // minus: r is x + n ln 2, and the series alternates
    const Vec<T> n = shifted[v] - shift;
    r[v] = minus ? xsimd::fma(n, Vec<T>(Table::ln2_low), xsimd::fma(n, Vec<T>(Table::ln2_high), x[v]))
                 : xsimd::fnma(n, Vec<T>(Table::ln2_low), xsimd::fnma(n, Vec<T>(Table::ln2_high), x[v]));
  }
  sum_series(minus ? exp_minus_series<T> : exp_series<T>, r, x);
  for (int v = 0; v < V; ++v) x[v] *= power_of_two<T>(shifted[v]);
}
// 1 / x for x in [1, 2^126]
template <class T>
inline __attribute__((always_inline)) Vec<T> reciprocal(const Vec<T>& x) {
#if defined(__aarch64__)
  if constexpr (std::is_same_v<T, float>) {  // two Newton steps have three times the throughput of the divider
    const float32x4_t d = x;
    float32x4_t r = vrecpeq_f32(d);
    r = vmulq_f32(r, vrecpsq_f32(d, r));
    return vmulq_f32(r, vrecpsq_f32(d, r));
  }
#endif
  return Vec<T>(T(1)) / x;
}

// x <- 1 / (1 + e^{-x})
template <class T, int V>
inline __attribute__((always_inline)) void sigmoid(Vec<T> (&x)[V]) {
  exp<T, V, true>(x);
  for (int v = 0; v < V; ++v) x[v] = reciprocal<T>(Vec<T>(T(1)) + x[v]);
}

}  // namespace sb::simd
