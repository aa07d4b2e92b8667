#include "kernels/cpu/gru.h"

#include <algorithm>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/packs.h"
#include "kernels/cpu/parallel.h"

namespace sb::cpu {
namespace {

template <class T, int V>
inline __attribute__((always_inline)) simd::Pack<T, V> tanh_of(const simd::Pack<T, V>& x) {
  return simd::Vec<T>(T(2)) * simd::sigmoid(x + x) - simd::Vec<T>(T(1));
}

// One frame of one sequence. gates: x part then h part, each (r, z, n); saved: r, z >= a_min, n, h part of n.
template <class T>
void step_forward(int64_t d, T a_min, const T* gi, const T* gh, const T* h, T* out, T* saved) {
  simd::for_packs<T>(d, [=](int64_t i, const auto& io) {
    const auto r = simd::sigmoid(io.load(gi + i) + io.load(gh + i));
    auto z = simd::sigmoid(io.load(gi + d + i) + io.load(gh + d + i));
    for (auto& vector : z.v) vector = xsimd::max(simd::Vec<T>(a_min), vector);  // in this order x86 keeps a NaN
    const auto hn = io.load(gh + 2 * d + i);
    const auto n = tanh_of(io.load(gi + 2 * d + i) + r * hn);
    io.store(out + i, n + z * (io.load(h + i) - n));
    io.store(saved + i, r);
    io.store(saved + d + i, z);
    io.store(saved + 2 * d + i, n);
    io.store(saved + 3 * d + i, hn);
  });
}

// grad: on entry the gradient of h_t; on return that of h_{t-1}, through z only. d_gi and d_gh: gradients of the two
// gate rows. A z that is clamped to a_min has no gradient.
template <class T>
void step_backward(int64_t d, T a_min, const T* saved, const T* h, T* grad, T* d_gi, T* d_gh) {
  using Vec = simd::Vec<T>;
  const Vec one(T(1)), none(T(0)), least(a_min);
  simd::for_vectors<T>(d, [=](int64_t i, const auto& io) {
    const Vec r = io.load(saved + i), z = io.load(saved + d + i), n = io.load(saved + 2 * d + i);
    const Vec hn = io.load(saved + 3 * d + i), g = io.load(grad + i);
    const Vec dn = g * (one - z) * (one - n * n);
    const Vec dz = xsimd::select(z <= least, none, g * (io.load(h + i) - n) * z * (one - z));
    const Vec dr = dn * hn * r * (one - r);
    io.store(grad + i, g * z);
    io.store(d_gi + i, dr);
    io.store(d_gi + d + i, dz);
    io.store(d_gi + 2 * d + i, dn);
    io.store(d_gh + i, dr);
    io.store(d_gh + d + i, dz);
    io.store(d_gh + 2 * d + i, dn * r);
  });
}

template <class Body>
void each_sequence(int64_t batch, int64_t d, const Body& body) {
  parallel_for(batch, std::max<int64_t>(1, 8192 / d), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) body(b);
  });
}

// The weight [3d,d], and its transpose.
template <class T>
Matrix<T> weight_of(const GruSizes& s, const T* weight) {
  return {weight, s.width, 1};
}
template <class T>
Matrix<T> turned_weight(const GruSizes& s, const T* weight) {
  return {weight, 1, s.width};
}

}  // namespace

template <class T>
void gru_forward(const GruSizes& s, const T* gi, const T* weight, const T* bias, double a_min, T* hidden, T* saved) {
  const int64_t d = s.width, batch = s.batch;
  Arena<T> arena(Arena<T>::rounded(batch * 3 * d));
  T* const gh = arena.take(batch * 3 * d);
  for (int64_t t = 0; t < s.time; ++t) {
    const T* const h = hidden + t * batch * d;
    matmul<T>(batch, 3 * d, d, {h, d, 1}, turned_weight(s, weight), gh, 3 * d);
    each_sequence(batch, d, [&](int64_t b) {
      T* const gates = gh + b * 3 * d;
      for (int64_t i = 0; i < 3 * d; ++i) gates[i] += bias[i];
      step_forward<T>(d, static_cast<T>(a_min), gi + (t * batch + b) * 3 * d, gates, h + b * d,
                      hidden + ((t + 1) * batch + b) * d, saved + (t * batch + b) * 4 * d);
    });
  }
}

template <class T>
void gru_backward(const GruSizes& s, const T* d_out, const T* hidden, const T* saved, const T* weight, double a_min,
                  T* d_gi, T* d_gh, T* grad) {
  const int64_t d = s.width, batch = s.batch;
  std::fill_n(grad, batch * d, T(0));
  for (int64_t t = s.time - 1; t >= 0; --t) {
    each_sequence(batch, d, [&](int64_t b) {
      const int64_t row = t * batch + b;
      T* const g = grad + b * d;
      for (int64_t i = 0; i < d; ++i) g[i] += d_out[row * d + i];
      step_backward<T>(d, static_cast<T>(a_min), saved + row * 4 * d, hidden + row * d, g, d_gi + row * 3 * d,
                       d_gh + row * 3 * d);
    });
    matmul<T>(batch, d, 3 * d, {d_gh + t * batch * 3 * d, 3 * d, 1}, weight_of(s, weight), grad, d, Start::add);
  }
}

#define SB_INSTANTIATE(T)                                                                   \
  template void gru_forward(const GruSizes&, const T*, const T*, const T*, double, T*, T*); \
  template void gru_backward(const GruSizes&, const T*, const T*, const T*, const T*, double, T*, T*, T*);
SB_INSTANTIATE(float)
SB_INSTANTIATE(double)
#undef SB_INSTANTIATE

}  // namespace sb::cpu
