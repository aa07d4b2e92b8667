// Packs of SIMD vectors, loops over rows in packs, and gate functions of packs.
#pragma once
#include <iterator>

#include "kernels/cpu/vectors.h"

namespace sb::simd {

// V vectors that are processed together, to hide the latency of dependent instructions.
template <class T, int V>
struct Pack {
  Vec<T> v[V];
};
template <class T, int V, class F>
inline __attribute__((always_inline)) Pack<T, V> each(const F& f) {
  Pack<T, V> out;
  for (int i = 0; i < V; ++i) out.v[i] = f(i);
  return out;
}
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> operator+(const Pack<T, V>& a, const Pack<T, V>& b) {
  return each<T, V>([&](int i) { return a.v[i] + b.v[i]; });
}
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> operator-(const Pack<T, V>& a, const Pack<T, V>& b) {
  return each<T, V>([&](int i) { return a.v[i] - b.v[i]; });
}
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> operator*(const Pack<T, V>& a, const Pack<T, V>& b) {
  return each<T, V>([&](int i) { return a.v[i] * b.v[i]; });
}
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> operator+(const Pack<T, V>& a, const Vec<T>& b) {
  return each<T, V>([&](int i) { return a.v[i] + b; });
}
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> operator-(const Pack<T, V>& a, const Vec<T>& b) {
  return each<T, V>([&](int i) { return a.v[i] - b; });
}
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> operator-(const Vec<T>& a, const Pack<T, V>& b) {
  return each<T, V>([&](int i) { return a - b.v[i]; });
}
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> operator*(const Pack<T, V>& a, const Vec<T>& b) {
  return each<T, V>([&](int i) { return a.v[i] * b; });
}
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> operator*(const Vec<T>& a, const Pack<T, V>& b) {
  return b * a;
}
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> operator-(const Pack<T, V>& a) {
  return each<T, V>([&](int i) { return -a.v[i]; });
}

template <class T, int V>
inline __attribute__((always_inline)) Vec<T> sum_of(const Pack<T, V>& x) {
  if constexpr (V == 1) {
    return x.v[0];
  } else {
    return sum_of(each<T, V / 2>([&](int i) { return x.v[2 * i] + x.v[2 * i + 1]; }));
  }
}

// Memory access for the body of a loop over packs: V whole vectors, or (PartPack) the last elements of a row.
template <class T, int V>
struct WholePack {
  static constexpr int vectors = V;
  __attribute__((always_inline)) Pack<T, V> load(const T* p) const {
    return each<T, V>([&](int i) { return simd::load(p + i * lanes<T>); });
  }
  __attribute__((always_inline)) void store(T* p, const Pack<T, V>& x) const {
    for (int i = 0; i < V; ++i) simd::store(p + i * lanes<T>, x.v[i]);
  }
  __attribute__((always_inline)) Pack<T, V> only(const Pack<T, V>& x) const { return x; }
  // Prefetches into the L1 cache for a later loop.
  __attribute__((always_inline)) void prefetch(const T* p) const {
    for (int64_t i = 0; i < V * lanes<T>; i += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(p + i);
  }
};
template <class T>
struct PartPack {
  static constexpr int vectors = 1;
  PartVector<T> part;
  __attribute__((always_inline)) Pack<T, 1> load(const T* p) const { return {{part.load(p)}}; }
  __attribute__((always_inline)) void store(T* p, const Pack<T, 1>& x) const { part.store(p, x.v[0]); }
  __attribute__((always_inline)) Pack<T, 1> only(const Pack<T, 1>& x) const { return {{part.only(x.v[0])}}; }
  void prefetch(const T*) const {}
};

// for_packs calls body(i, io) for packs of V vectors in [0, n), then packs of four, then single vectors, then the
// remaining elements. rest_of_packs gets a copy of the body: if the address of the body itself were taken, the compiler
// would keep the body in memory and write it again for every row (measured: 13 % of a norm's time).
template <class T, int V, class Body>
__attribute__((noinline)) void rest_of_packs(int64_t i, int64_t n, const Body& body) {
  if constexpr (V > 4)
    for (; i + 4 * lanes<T> <= n; i += 4 * lanes<T>) body(i, WholePack<T, 4>{});
  for (; i + lanes<T> <= n; i += lanes<T>) body(i, WholePack<T, 1>{});
  if (i < n) body(i, PartPack<T>{{n - i}});
}
template <class T, int V = 4, class Body>
inline __attribute__((always_inline)) void for_packs(int64_t n, const Body& body) {
  constexpr int64_t step = V * lanes<T>;
  int64_t i = 0;
  for (; i + step <= n; i += step) body(i, WholePack<T, V>{});
  if (i < n) [[unlikely]] {
    const Body copy = body;
    rest_of_packs<T, V, Body>(i, n, copy);
  }
}

// sums_of computes K sums over a row in one loop: add(i, io, sums) adds packs to sums[0], ..., sums[K - 1]. Returns K
// vectors; the caller adds their lanes, preferably after a loop over many rows, so that no row waits for this chain of
// additions. The order of summation depends only on n.
template <class T, int K, class Add>
__attribute__((noinline)) Pack<T, K> rest_of_sums(int64_t i, int64_t n, const Add& add) {
  Pack<T, 1> sums[K];
  for (int k = 0; k < K; ++k) sums[k].v[0] = Vec<T>(T(0));
  for (; i + lanes<T> <= n; i += lanes<T>) add(i, WholePack<T, 1>{}, sums);
  if (i < n) add(i, PartPack<T>{{n - i}}, sums);
  return each<T, K>([&](int k) { return sums[k].v[0]; });
}
template <class T, int K, int V = 4, class Add>
inline __attribute__((always_inline)) Pack<T, K> sums_of(int64_t n, const Add& add) {
  constexpr int64_t step = V * lanes<T>;
  Pack<T, V> sums[K];
  for (int k = 0; k < K; ++k) sums[k] = each<T, V>([](int) { return Vec<T>(T(0)); });
  int64_t i = 0;
  for (; i + step <= n; i += step) add(i, WholePack<T, V>{}, sums);
  if (i < n) [[unlikely]] {
    const Add copy = add;
    const Pack<T, K> rest = rest_of_sums<T, K, Add>(i, n, copy);
    for (int k = 0; k < K; ++k) sums[k].v[0] += rest.v[k];
  }
  return each<T, K>([&](int k) { return sum_of(sums[k]); });
}
// The sum of all elements of the packs term(i, io).
template <class T, int V = 4, class Term>
inline __attribute__((always_inline)) T sum_packs(int64_t n, const Term& term) {
  const Pack<T, 1> sum = sums_of<T, 1, V>(
      n, [term](int64_t i, auto io, auto& sums) __attribute__((always_inline)) { sums[0] = sums[0] + term(i, io); });
  return horizontal_sum(sum.v[0]);
}

template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> exp(Pack<T, V> x) {
  simd::exp<T, V>(x.v);
  return x;
}
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> sigmoid(Pack<T, V> x) {
  simd::sigmoid<T, V>(x.v);
  return x;
}
// d silu(x) / dx given s = sigmoid(x).
template <class X>
inline __attribute__((always_inline)) X silu_slope(const X& x, const X& s) {
  return s + x * (s - s * s);
}

// atanh(s) / s = p(s^2) for s^2 <= 1/9, highest power first (relative error 4e-9 for float, 2e-18 for double)
template <class T>
struct AtanhTable;
template <>
struct AtanhTable<float> {
  static constexpr float power[] = {1.4089161881e-01F, 1.3980302621e-01F, 2.0012455057e-01F, 3.3333157343e-01F,
                                    1.0000000040e+00F};
};
template <>
struct AtanhTable<double> {
  static constexpr double power[] = {8.53003531570234174719e-02,
                                     4.15783959560811072764e-02,
                                     6.05612518423796902800e-02,
                                     6.65005114872636304835e-02,
                                     7.69331773729772516734e-02,
                                     9.09086989324961874948e-02,
                                     1.11111120559094778137e-01,
                                     1.42857142724620661545e-01,
                                     2.00000000000951694279e-01,
                                     3.33333333333330650294e-01,
                                     1.0};
};

// log(1 + e^{-|x|}), as 2 atanh(s) with u = e^{-|x|} and s = u / (2 + u) <= 1/3, which is accurate even for small u.
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> log1p_exp_of_minus_abs(const Pack<T, V>& x) {
  const Pack<T, V> u = simd::exp(each<T, V>([&](int i) { return -xsimd::abs(x.v[i]); }));
  const Pack<T, V> s = each<T, V>([&](int i) { return u.v[i] * reciprocal<T>(u.v[i] + Vec<T>(T(2))); });
  const Pack<T, V> square = s * s;
  Pack<T, V> p = each<T, V>([](int) { return Vec<T>(AtanhTable<T>::power[0]); });
  for (size_t k = 1; k < std::size(AtanhTable<T>::power); ++k)
    p = each<T, V>([&](int i) { return xsimd::fma(p.v[i], square.v[i], Vec<T>(AtanhTable<T>::power[k])); });
  return (s + s) * p;
}
// log(1 + e^x); returns x above 20, like PyTorch.
template <class T, int V>
inline __attribute__((always_inline)) Pack<T, V> softplus(const Pack<T, V>& x) {
  const Pack<T, V> log_part = log1p_exp_of_minus_abs(x);
  return each<T, V>([&](int i) {
    return xsimd::select(x.v[i] > Vec<T>(T(20)), x.v[i], xsimd::max(x.v[i], Vec<T>(T(0))) + log_part.v[i]);
  });
}

}  // namespace sb::simd
